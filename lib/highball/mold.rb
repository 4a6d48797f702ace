# frozen_string_literal: true

require_relative "../highball"
require_relative "allocator"
require_relative "app"
require_relative "boot_cache"
require_relative "boot_output"
require_relative "checkpoint"
require_relative "checkup"
require_relative "collector"
require_relative "compiler"
require_relative "control_socket"
require_relative "diagnosis"
require_relative "forked_companion"
require_relative "forking_thread"
require_relative "heap"
require_relative "heap_layout"
require_relative "journey"
require_relative "lasting_state"
require_relative "native"
require_relative "oom_score"
require_relative "own_memory"
require_relative "ruby_version"
require_relative "worker_fork"

module Highball
  # The process that loads the application once, never serves, and forks a worker when the supervisor orders one.
  # (Without preloading, it only sets up the gems, and each worker loads the application.)
  class Mold
    # Signals that terminals and init systems send to whole process groups. `highball` acts on them; the other processes
    # ignore them and follow its orders.
    GROUP_SIGNALS = %w[INT QUIT HUP TERM].freeze
    # How long there have been no orders when the mold has time for the boot cache, in seconds.
    QUIET = 3

    def self.ignore_group_signals
      GROUP_SIGNALS.each { |signal| trap(signal) {} } # a block, because IGNORE would be inherited by exec
    end

    # Prints the backtrace of every thread on standard error.
    def self.print_backtraces
      Thread.list.each do |thread|
        lines = thread.backtrace || ["(has no backtrace)"]
        $stderr.write("#{thread.inspect}\n", *lines.map { |line| "    #{line}\n" })
      end
    end

    # The life of this process, which starts as a mold, and of its forks. A mold's `start` returns a worker in the
    # forked process; a worker's `start` returns a mold when it is promoted. So the stack keeps nothing of earlier roles
    # (docs/decisions/0006-a-worker-becomes-a-mold-by-returning.md).
    #
    # file:: the file of the application, if one was named.
    def self.start(file = nil)
      preload = ENV.delete("HIGHBALL_PRELOAD") != "off"
      may_refork = ENV.delete("HIGHBALL_MAY_REFORK") == "on"
      boots_beside = ENV.delete("HIGHBALL_BOOTS_BESIDE") == "on"
      role = new(ControlSocket.from_environment, file, preload: preload, may_refork: may_refork,
                                                       boots_beside: boots_beside)
      role = role.start while role
    end

    # may_refork::   whether one of its workers may become a mold without being asked.
    # boots_beside:: whether workers of another mold serve while this one boots.
    def initialize(control, file = nil, preload: true, may_refork: false, boots_beside: false)
      @control = control
      @file = file
      @preload = preload
      @may_refork = may_refork
      @boots_beside = boots_beside
      @journey = Journey.new(control)
      @output = []
    end

    # Boots the application and forks workers until the supervisor closes the socket. Returns the worker, in each
    # worker's process.
    def start
      OomScore.mold
      take_signals
      let_others_go_first if @boots_beside && @preload
      boot
      name_process
      take_signals # again, because the application may have set its own handlers
      serve_orders || exit!(0)
    rescue Exception => e # rubocop:disable Lint/RescueException -- any exception here is a failed boot
      fail_with(e)
    end

    private

    def let_others_go_first
      @forking = ForkingThread.new
      ForkingThread.lower_priority
    end

    def take_signals
      Mold.ignore_group_signals
      trap("USR2") { @booted ? Mold.print_backtraces : report_hang }
    end

    # The supervisor asks where the boot hangs. This runs in the main thread, which hangs.
    def report_hang
      Mold.print_backtraces
      fail_with(Journey::TookTooLong.new(Thread.main.backtrace))
    end

    def boot
      @journey.step(:load_highball) { load_highball }
      @found = @journey.step(:find_app) { find_app }
      @journey.step(:load_bundler) { BootCache.during { App.set_up_gems } }
      boot_app if @preload
      @booted = true
      @output.stop
      Checkpoint.pass("mold.booted")
      @preload ? say_booted : @control.say(:bare, pid: Process.pid)
    end

    def boot_app
      ForkingThread.lower_priority_again if @forking
      HeapLayout.begin_large(App::FOLDER) if @found.large?
      @app = @journey.step(:load_app) { App.load(App::FOLDER, @found) }
      @forks_early = forks_early?
      Compiler.enable
      @journey.step(:prepare_fork) { prepare_fork }
    end

    def say_booted
      checkup = Checkup.new(examine: ENV.fetch("HIGHBALL_EXAMINE", nil))
      @control.say(:booted, **@app.description, restartable: true, findings: checkup.findings, offers: checkup.offers)
    end

    def load_highball
      HeapLayout.forget_least
      Compiler.take_decision
      Collector.take_decision
      Allocator.take_decision
      Extension.load
      Native.exit_when_closed(@control.fileno)
      $stdout.sync = true
      @output = BootOutput.start
    end

    # Detects the application by its files alone: Bundler chooses the gems later.
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
      BootCache.during { require_relative "worker" } # so that workers share this code, too
      Highball.hooks.run(:before_fork)
      @app.disconnect_databases
      Collector.pause if @forks_early
      state if @may_refork # noting it leaves much garbage, so before the heap is laid out
      lay_out_heap unless @forks_early
    end

    # Whether the first worker is forked before the heap is laid out: it serves sooner then. Where workers of another
    # mold serve, no client waits for it, and a small heap is laid out in no time.
    def forks_early? = !@boots_beside && HeapLayout.large?

    # The first worker shares less of its memory than others. The supervisor replaces it once this is done.
    def lay_out_heap_after(worker)
      lay_out_heap
      @control.say(:laid_out, worker: worker)
    end

    def lay_out_heap
      Checkpoint.pass("mold.lay_out_heap")
      Collector.go_on
      warm_up
      @forks_early = false
    end

    # Noted when it is first asked for.
    def state = @state ||= LastingState.new(App::FOLDER)

    def warm_up = @app.warm_up

    # Returns the worker, in a worker's process; nil once the supervisor has closed the socket.
    def serve_orders
      require_relative "worker"
      while (message, descriptors = next_order)
        case message[:type]
        when "fork"
          worker = fork_worker(message, descriptors)
          return worker if worker

          lay_out_heap_after(message[:worker]) if @forks_early && @has_forked
        when "fork_companion"
          companion = fork_companion(message[:companion], descriptors)
          return companion if companion
        when "heap" then @control.say(:heap, heap: Heap.figures)
        when "memory" then @control.say(:memory, memory: OwnMemory.figures)
        else warn "highball: the mold received an unknown message: #{message[:type]}"
        end
      end
    end

    def next_order
      BootCache.write if BootCache.lacks_files? && !@control.to_io.wait_readable(QUIET)
      @control.receive
    end

    # Returns the worker in the new process, and nil here.
    def fork_worker(message, descriptors)
      @app&.disconnect_databases
      state if message[:may_refork]
      Collector.let_choose { Highball.hooks.run(:before_worker_fork, message[:worker]) }
      worker = fork_process(message, descriptors)
      forked(message[:worker]) unless worker
      worker
    rescue StandardError => e # there is no worker now; the next fork may succeed
      refuse(message, ExceptionWords.new(e).message)
      nil
    ensure
      descriptors.each(&:close) unless worker
    end

    # Returns the companion in the new process, and nil here.
    def fork_companion(number, descriptors)
      companion = ForkedCompanion.new(descriptors)
      @app&.disconnect_databases
      forked = fork_by_thread { fork_here(companion.guardian) { become_companion(companion) } }
    rescue StandardError => e
      @control.say(:companion_not_forked, companion: number, message: ExceptionWords.new(e).message)
      nil
    ensure
      descriptors.each(&:close) unless forked
    end

    # A Puma configuration has hooks for this.
    def forked(number)
      Highball.hooks.run(:after_worker_fork, number)
      Highball.hooks.run(:after_booted) unless @has_forked
      @has_forked = true
    end

    # Returns the worker in the new process, and nil here.
    def fork_process(message, descriptors)
      fork_by_thread { fork_here { become_worker(message, descriptors) } }
    end

    def fork_by_thread(&block) = @forking ? @forking.fork_by(&block) : yield

    # Calls the block in the new process, and returns what it returns there. See WorkerFork.
    def fork_here(guardian = nil)
      mold = Process.pid
      yield unless WorkerFork.fork(guardian)
    rescue StandardError => e
      raise if Process.pid == mold

      warn "highball: cannot fork a process: #{ExceptionWords.summary(e)}"
      exit!(1)
    end

    def become_worker(message, descriptors)
      leave_mold
      Worker.new(message, descriptors, @app, @found, (@state if message[:may_refork]))
    end

    def become_companion(companion)
      leave_mold
      Collector.go_on
      companion
    end

    def leave_mold
      @control.close # the mold's
      BootCache.forget
    end

    def refuse(message, reason)
      @control.say(:fork_failed, worker: message[:worker], message: reason)
    end

    def fail_with(exception)
      @control.say(:failed, step: @journey.current, **Diagnosis.fields_of(exception), output: @output.to_a)
      $stdout.flush
      exit!(1)
    end

    def name_process
      Process.setproctitle("highball mold: #{File.basename(App::FOLDER)}")
    end
  end
end
