# frozen_string_literal: true

require_relative "../highball"
require_relative "app"
require_relative "boot_output"
require_relative "checkup"
require_relative "control_socket"
require_relative "diagnosis"
require_relative "heap"
require_relative "journey"
require_relative "native"

module Highball
  # The process that loads the application once, never serves, and forks a worker whenever the supervisor asks.
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

    def self.start
      new(ControlSocket.from_environment).start
    end

    def initialize(control)
      @control = control
      @journey = Journey.new(control)
      @output = []
    end

    # Boots the application and forks workers until the supervisor goes away.
    def start
      take_signals
      boot
      Process.setproctitle("highball mold: #{name}")
      take_signals # once more: the application may have set its own
      serve_orders
      exit!(0)
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
      @journey.step(:load_bundler) { App.set_up_gems }
      @app = @journey.step(:load_app) { App.load }
      @journey.step(:prepare_fork) { prepare_fork }
      @booted = true
      @output.stop
      @control.say(:booted, **@app.description, restartable: true, findings: @findings)
    end

    def load_highball
      Extension.load
      Native.exit_when_closed(@control.fileno)
      $stdout.sync = true
      @output = BootOutput.start
    end

    def prepare_fork
      require_relative "worker"
      Highball.hooks.run(:before_fork)
      @app.disconnect_databases
      @findings = Checkup.new(examine: ENV.fetch("HIGHBALL_EXAMINE", nil)).findings
      @app.warm_up
    end

    def serve_orders
      while (message, descriptors = @control.receive)
        case message[:type]
        when "fork" then fork_worker(message, descriptors)
        when "heap" then @control.say(:heap, heap: Heap.figures)
        else warn "highball: the mold was sent an unknown message: #{message[:type]}"
        end
      end
    end

    def fork_worker(message, descriptors)
      @app.disconnect_databases
      fork_process(message, descriptors)
    rescue StandardError => e # whatever it is, there is no worker, and the next one may be luckier
      refuse(message, e.message)
    ensure
      descriptors.each(&:close)
    end

    # By way of an intermediate, so that the worker becomes a child of `highball`, which reaps it. By Process.fork, so
    # that whoever wants to know of forks does (ActiveSupport::ForkTracker).
    def fork_process(message, descriptors)
      intermediate = Process.fork do
        fork_grandchild(message, descriptors)
      end
      _pid, status = Process.wait2(intermediate)
      refuse(message, "the intermediate process #{status}") unless status.success?
    end

    # Ends by exit!, because the application's at_exit blocks are none of the intermediate's business.
    def fork_grandchild(message, descriptors)
      Process.fork { become_worker(message, descriptors) }
      exit!(0)
    rescue SystemCallError => e
      warn "highball: cannot fork a worker: #{e.message}"
      exit!(1)
    end

    def become_worker(message, descriptors)
      Worker.new(message, descriptors, @app).start(mold_control: @control)
    end

    def refuse(message, reason)
      @control.say(:fork_failed, worker: message[:worker], message: reason)
    end

    def fail_with(exception)
      @control.say(:failed, step: @journey.current, **Diagnosis.new(exception).fields, output: @output.to_a)
      $stdout.flush
      exit!(1)
    end

    def name = File.basename(Dir.pwd)
  end
end
