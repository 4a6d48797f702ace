# frozen_string_literal: true

require "socket"
require_relative "checkpoint"
require_relative "control_socket"
require_relative "diagnosis"
require_relative "heap"
require_relative "server"

module Highball
  # A process that serves: the child that the mold forked, from its first line to its exit. Its main thread never
  # serves; it waits for the supervisor's word and for signals.
  class Worker
    # `message` is the order to fork, `descriptors` what came with it: the ring's three, and the control socket.
    def initialize(message, descriptors, app)
      @number = message[:worker]
      @threads = message[:threads]
      @log_format = message[:log_format]
      @serving = message.slice(:development, :early_hints)
      *@ring_descriptors, control = descriptors
      @control = ControlSocket.new(control)
      @app = app
    end

    # Serves until it is told to end. Runs in the new process, and ends it.
    def start(mold_control:)
      mold_control.close
      Native.exit_when_closed(@control.fileno)
      Checkpoint.pass("worker.born")
      introduce
      Checkpoint.pass("worker.introduced")
      begin
        settle
        server = open_server
      rescue Exception => e # rubocop:disable Lint/RescueException -- hooks may raise anything
        give_up(e)
      end
      serve(server)
      Checkpoint.pass("worker.exiting")
      exit(0) # with the application's at_exit blocks
    end

    private

    def introduce
      pidfd = IO.for_fd(Native.pidfd)
      @control.say(:hello, worker: @number, pid: Process.pid, descriptors: [pidfd])
      pidfd.close
    end

    # Makes the copy of the mold a process of its own.
    def settle
      Process.setproctitle("highball worker #{@number}: #{@app.name}")
      Random.srand # or all workers would draw the same numbers
      @news, @announce = IO.pipe
      Mold.ignore_group_signals
      trap("TERM") { @announce.write_nonblock("t", exception: false) }
      Highball.hooks.run(:after_fork, @number)
    end

    def open_server
      numbers = @ring_descriptors.map do |io|
        io.autoclose = false # the ring owns them from now on
        io.fileno
      end
      log = Log.new(format: @log_format, worker: @number)
      Server.new(@app.rack_app, Ring.new(*numbers), threads: @threads, name: "worker #{@number}",
                                                    log: log, **@serving)
    end

    def serve(server)
      serving = Thread.new do
        server.run
      ensure
        @announce.write_nonblock("e", exception: false)
      end
      serving.report_on_exception = true
      @control.say(:ready)
      Checkpoint.pass("worker.ready")
      wait_for_the_end(serving)
      Checkpoint.pass("worker.draining")
      server.stop
      serving.join
      Highball.hooks.run(:before_worker_shutdown, @number)
    end

    # Returns when the supervisor says so. A TERM only asks it to: the front has to be told first, or requests
    # would wait in a ring that nobody reads.
    def wait_for_the_end(serving)
      loop do
        readable, = IO.select([@control, @news])
        return if readable.include?(@control) && told_to_drain?
        next unless readable.include?(@news)

        @news.read_nonblock(16, exception: false)
        raise "the serving threads have ended by themselves" unless serving.alive?

        @control.say(:leaving)
      end
    end

    def told_to_drain?
      message, = @control.receive
      exit!(1) unless message # the supervisor has gone
      case message[:type]
      when "drain" then return true
      when "heap" then tell_heap(collect: message[:gc])
      else warn "highball: worker #{@number} was sent an unknown message: #{message[:type]}"
      end
      false
    end

    def tell_heap(collect:)
      GC.start if collect
      @control.say(:heap, heap: Heap.figures)
    end

    def give_up(exception)
      @control.say(:failed, error: Diagnosis.new(exception, root: @app.folder).error)
      $stdout.flush
      exit!(1)
    end
  end
end
