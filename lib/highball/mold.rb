# frozen_string_literal: true

require_relative "../highball"
require_relative "app"
require_relative "boot_output"
require_relative "checkpoint"
require_relative "checkup"
require_relative "control_socket"
require_relative "diagnosis"
require_relative "heap"
require_relative "journey"
require_relative "native"
require_relative "ruby_version"

module Highball
  # The process that loads the application once, never serves, and forks a worker whenever the supervisor asks. (Where
  # the application is not to be preloaded, it loads the gems' list only, and each worker the application.)
  class Mold
    # Signals that terminals and init systems send to whole groups: they are meant for `highball`, which tells
    # everybody else what to do.
    GROUP_SIGNALS = %w[INT QUIT HUP TERM].freeze

    def self.ignore_group_signals
      GROUP_SIGNALS.each { |signal| trap(signal) {} } # a block, because IGNORE would be inherited by exec
    end

    # Where every thread is, on standard error.
    def self.print_backtraces
      Thread.list.each do |thread|
        lines = thread.backtrace || ["(has no backtrace)"]
        $stderr.write("#{thread.inspect}\n", *lines.map { |line| "    #{line}\n" })
      end
    end

    # The life of this process and of those that are forked from it, first as a mold. What is forked from a mold is a
    # worker, and a worker may become a mold: each returns what the process is next, so that however long this goes
    # on, nothing of what it was before is left on the stack.
    #
    # file:: the file of the application, where one was named.
    def self.start(file = nil)
      preload = ENV.delete("HIGHBALL_PRELOAD") != "off"
      role = new(ControlSocket.from_environment, file, preload: preload)
      role = role.start while role
    end

    def initialize(control, file = nil, preload: true)
      @control = control
      @file = file
      @preload = preload
      @journey = Journey.new(control)
      @output = []
    end

    # Boots the application and forks workers until the supervisor goes away. Returns in each of them: the worker.
    def start
      take_signals
      boot
      name_process
      take_signals # once more: the application may have set its own
      serve_orders || exit!(0)
    rescue Exception => e # rubocop:disable Lint/RescueException -- whatever it was, it is the boot that failed
      fail_with(e)
    end

    private

    def take_signals
      Mold.ignore_group_signals
      trap("USR2") { @booted ? Mold.print_backtraces : report_hang }
    end

    # The supervisor asks where the boot hangs: the main thread, which runs this, stands there.
    def report_hang
      Mold.print_backtraces
      fail_with(Journey::TookTooLong.new(Thread.main.backtrace))
    end

    def boot
      @journey.step(:load_highball) { load_highball }
      @found = @journey.step(:find_app) { find_app }
      @journey.step(:load_bundler) { App.set_up_gems }
      boot_app if @preload
      @booted = true
      @output.stop
      Checkpoint.pass("mold.booted")
      @preload ? say_booted : @control.say(:bare, pid: Process.pid)
    end

    def boot_app
      @app = @journey.step(:load_app) { App.load(App::FOLDER, @found) }
      @journey.step(:prepare_fork) { prepare_fork }
    end

    def say_booted
      findings = Checkup.new(examine: ENV.fetch("HIGHBALL_EXAMINE", nil)).findings
      @control.say(:booted, **@app.description, restartable: true, findings: findings)
    end

    def load_highball
      Extension.load
      Native.exit_when_closed(@control.fileno)
      $stdout.sync = true
      @output = BootOutput.start
    end

    # By its files alone: the gems that it is made of are chosen later.
    def find_app
      folder = AppFolder.new(Dir.pwd, @file)
      environment = ENV.fetch("RACK_ENV", "development")
      found = App.find(folder)
      @control.say(:found, app: "#{found.name} in #{environment}", because: found.evidence.words)
      [RubyVersion.mismatch(folder), *found.warnings(environment)].compact.each do |warning|
        @control.say(:warning, **warning.to_h)
      end
      found
    end

    def prepare_fork
      require_relative "worker" # so that it is shared too
      Highball.hooks.run(:before_fork)
      @app.disconnect_databases
      warm_up
    end

    def warm_up = @app.warm_up

    # Returns in a new process what it is: a worker. nil when the supervisor has gone.
    def serve_orders
      require_relative "worker"
      while (message, descriptors = @control.receive)
        case message[:type]
        when "fork"
          worker = fork_worker(message, descriptors)
          return worker if worker
        when "heap" then @control.say(:heap, heap: Heap.figures)
        else warn "highball: the mold was sent an unknown message: #{message[:type]}"
        end
      end
    end

    # The worker, in the new process, and nil here.
    def fork_worker(message, descriptors)
      @app&.disconnect_databases
      worker = fork_process(message, descriptors)
    rescue StandardError => e # whatever it is, there is no worker, and the next one may be luckier
      refuse(message, e.message)
      nil
    ensure
      descriptors.each(&:close) unless worker
    end

    # By way of an intermediate, so that the worker becomes a child of `highball`, which reaps it. By Process.fork, so
    # that whoever wants to know of forks does (ActiveSupport::ForkTracker).
    def fork_process(message, descriptors)
      intermediate = Process.fork
      return fork_grandchild(message, descriptors) unless intermediate

      _pid, status = Process.wait2(intermediate)
      refuse(message, "the intermediate process #{status}") unless status.success?
      nil
    end

    # Ends by exit!, because the application's at_exit blocks are none of the intermediate's business.
    def fork_grandchild(message, descriptors)
      Checkpoint.pass("fork.intermediate")
      if Process.fork
        Checkpoint.pass("fork.worker_forked")
        exit!(0)
      end
      become_worker(message, descriptors)
    rescue StandardError => e
      warn "highball: cannot fork a worker: #{e.message}"
      exit!(1)
    end

    def become_worker(message, descriptors)
      @control.close # the mold's
      Worker.new(message, descriptors, @app, @found)
    end

    def refuse(message, reason)
      @control.say(:fork_failed, worker: message[:worker], message: reason)
    end

    def fail_with(exception)
      @control.say(:failed, step: @journey.current, **Diagnosis.new(exception).fields, output: @output.to_a)
      $stdout.flush
      exit!(1)
    end

    def name_process
      Process.setproctitle("highball mold: #{File.basename(App::FOLDER)}")
    end
  end
end
