# frozen_string_literal: true

require "tempfile"
require_relative "attached_worker"
require_relative "caller_mold"

module Highball
  # Serves an application object by threads of this very process, behind a separate `highball` process. For tests: the
  # application sees what the test sees, such as the records of a transaction that is never committed.
  #
  # It forks nothing: what would be a worker process is a Highball::AttachedWorker.
  class AttachedMold < CallerMold
    # `highball` has ended, and was not asked to.
    class Ended < StandardError
    end

    CONFIGURATION = File.join(__dir__, "attached.toml")
    # What may stand in the environment for the server of a deployment.
    OF_SERVERS = %w[BINDING HIGHBALL_CONFIG PIDFILE PORT].to_h { |name| [name, nil] }.freeze

    # arguments:: of `highball serve`, such as its address.
    def initialize(rack_app, arguments, threads:)
      @log = Tempfile.new("highball")
      super(rack_app, ["--config", CONFIGURATION, "--workers", "1", "--threads", threads.to_s, *arguments])
    end

    # Serves until #stop is called by another thread, or until this thread is killed, as all are when the process ends.
    def start
      serve_until_the_end
      conclude(Process.wait2(@highball).last)
    ensure
      @control.close # by which `highball` ends, if it has not
    end

    private

    # Ctrl-C in the terminal is for this process alone. Without it, `highball` ends too.
    def spawn_highball(arguments, **streams)
      super(arguments, OF_SERVERS, %i[out err] => @log.path, pgroup: true, **streams)
    end

    def serve_until_the_end
      @control.say(:booted, **@app.description, restartable: false)
      serve_orders
    rescue SystemCallError
      nil # it has ended already
    end

    # Nothing changes hands: connections to databases stay, and so does the heap.
    def fork_worker(message, descriptors)
      worker = AttachedWorker.new(message, descriptors, @app)
      Thread.new { worker.start }.name = "highball worker"
      nil
    end

    def conclude(status)
      raise Ended, "highball ended with #{status}:\n#{File.read(@log.path)}" unless status.success?
    ensure
      @log.close!
    end
  end
end
