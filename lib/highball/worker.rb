# frozen_string_literal: true

require "socket"
require_relative "busy_threads"
require_relative "checkpoint"
require_relative "collector"
require_relative "control_socket"
require_relative "diagnosis"
require_relative "fork_safety"
require_relative "freed_memory"
require_relative "heap"
require_relative "hijack"
require_relative "holdings"
require_relative "oom_score"
require_relative "own_memory"
require_relative "profile"
require_relative "promoted_mold"
require_relative "sendfile"
require_relative "server"

module Highball
  # A process that serves: the mold's child, from the fork to its exit, or until it becomes a mold. Its main thread
  # never serves; it waits for the supervisor's orders and for signals.
  class Worker
    # How long a worker that serves for the first time does not collect garbage, in seconds.
    COLLECTOR_PAUSE = 0.2

    # `message` is the order to fork; `descriptors` are the ring's three and the control socket. If the mold has not
    # loaded the application, `app` is nil and `found` is the detector that loads it. `state` is the LastingState of the
    # mold if Highball may promote this worker automatically.
    def initialize(message, descriptors, app, found = nil, state = nil)
      @number = message[:worker]
      @log_format = message[:log_format]
      @serving = message.slice(:development, :early_hints, :timeout_header, :client_certificates, :fibers,
                               :fiber_scheduler)
      @slow_request_ms = message[:slow_request_ms]
      @sendfile = message[:sendfile]
      ENV["HIGHBALL_HUB"] = message[:hub] # for Highball.publish, also in processes that the application starts
      @writes_hub_file = message[:hub] && message[:hub_file]
      *@ring_descriptors, control = descriptors
      @control = ControlSocket.new(control)
      @app = app
      @found = found
      @state = state
    end

    # Serves until the supervisor orders it to end, or to become a mold. Returns that mold.
    def start
      Native.exit_when_closed(@control.fileno)
      Native.separate_heap
      @fork_safety = ForkSafety.new
      @holdings = Holdings.new(@state)
      Checkpoint.pass("worker.born")
      introduce
      Checkpoint.pass("worker.introduced")
      order = serve(set_up)
      return become_mold if order == :promote && can_be_forked_from?

      Highball.hooks.run(:before_worker_shutdown, @number)
      Checkpoint.pass("worker.exiting")
      exit(0) # with the application's at_exit blocks
    end

    private

    # Consoles, jobs and scripts of this user find the hub there.
    def write_hub_file
      require_relative "hub_files" # with the application's json gem
      HubFiles.write(ENV.fetch("HIGHBALL_HUB"), ENV.fetch("PWD", Dir.pwd))
    rescue StandardError => e
      log = Log.new(format: @log_format, worker: @number)
      log.error(:hub_file_not_written, why: e.message)
    end

    def introduce
      pidfd = IO.for_fd(Native.pidfd)
      @control.say(:hello, worker: @number, pid: Process.pid, descriptors: [pidfd])
      pidfd.close
    rescue Errno::EPIPE
      exit!(0) # the supervisor ended during the fork
    end

    # The server, ready to serve. A failure is reported to the supervisor and ends the process.
    def set_up
      @step = :start_worker
      @holdings.own { settle }
      load_app unless @app
      write_hub_file if @writes_hub_file
      Collector.let_choose { Highball.hooks.run(:after_fork, @number) }
      @holdings.note_hooks if Highball.hooks.any?(:after_fork)
      server = @holdings.own { open_server }
      @step = nil
      server
    rescue Exception => e # rubocop:disable Lint/RescueException -- hooks may raise anything
      give_up(e)
    end

    # Replaces what the process shares with the mold: title, random seed, signal handlers.
    def settle
      OomScore.worker
      Process.setproctitle("highball worker #{@number}: #{File.basename(App::FOLDER)}")
      Random.srand # or all workers would draw the same numbers
      @news, @announce = IO.pipe
      take_signals
    end

    def take_signals
      Mold.ignore_group_signals
      trap("TERM") { @announce.write_nonblock("t", exception: false) }
    end

    # Loads the application, if the mold has not. A failure here belongs to the spawn journey.
    def load_app
      @step = :load_app
      @app = App.load(App::FOLDER, @found)
      Compiler.enable
      @step = :start_worker
      take_signals # again, because the application may have set its own handlers
      @control.say(:booted, **@app.description, restartable: true)
    end

    def name = "worker #{@number}"

    # No reference to it may remain: if this process becomes a mold, garbage collection closes its ring.
    def open_server
      numbers = @ring_descriptors.map do |io|
        io.autoclose = false # the ring owns them from now on
        io.fileno
      end
      log = Log.new(format: @log_format, worker: @number)
      sendfile = Sendfile.new(@sendfile, below: App::FOLDER) unless @sendfile.empty?
      server = Server.new(@app.rack_app, Ring.new(*numbers), name: name, log: log, sendfile: sendfile,
                                                             collector: Collector.of_worker, **@serving)
      watch_slow_requests(server) if @slow_request_ms
      Cable.receive_from_machines(log) if defined?(Cable)
      server
    end

    def watch_slow_requests(server)
      server.watch_slow_requests(@slow_request_ms / 1000.0) { |report| @control.say(:slow, **report) }
    end

    # Serves until it has answered every request after an order to end. Returns the order: `:drain` or `:promote`.
    def serve(server)
      serving = Thread.new do
        server.run
      ensure
        @announce.write_nonblock("e", exception: false)
      end
      serving.report_on_exception = true
      serving.thread_variable_set(:fork_safe, true) # it ends before the fork
      @control.say(:ready)
      Checkpoint.pass("worker.ready")
      order = wait_for_the_end(server, serving)
      Checkpoint.pass("worker.draining")
      @profile&.finish
      @fork_safety.note_threads
      server.stop
      # Without a limit, Ruby would report a deadlock if a thread of the application never ends.
      nil until serving.join(3600)
      order
    end

    # Returns the supervisor's order to end. A TERM only makes this worker ask for it: the front has to stop sending
    # requests first, or they would wait in a ring that no worker reads.
    def wait_for_the_end(server, serving)
      collect_later if Collector.paused?
      freed_memory = FreedMemory.new(server)
      loop do
        readable, = IO.select([@control, @news], nil, nil, freed_memory.pause)
        next freed_memory.look unless readable

        order = obey(server) if readable.include?(@control)
        return order if order
        next unless readable.include?(@news)

        @news.read_nonblock(16, exception: false)
        raise "the serving threads have ended unexpectedly" unless serving.alive?

        @control.say(:leaving)
      end
    end

    # The first requests do not wait for the garbage of the boot. An order ends the pause as well.
    def collect_later
      IO.select([@control, @news], nil, nil, COLLECTOR_PAUSE)
      Collector.go_on
    end

    # Receives an order. Returns it if it ends serving; carries out all others.
    def obey(server = nil)
      message, descriptors = @control.receive
      return supervisor_gone unless message

      case message[:type]
      when "drain", "promote" then return message[:type].to_sym
      when "may_promote" then report_fitness(careful: message[:careful])
      when "heap" then report_heap(collect: message[:gc])
      when "memory" then @control.say(:memory, memory: OwnMemory.figures)
      when "threads" then report_threads(server, **message.slice(:all, :first))
      when "profile" then begin_profile(server, descriptors.first, **message.slice(:mode, :milliseconds, :by_path))
      when "end_profile" then Native.end_profile
      when "leave_place" then server&.leave_place(message[:ticket])
      when "interrupt" then server&.interrupt(message[:ticket])
      else warn "highball: worker #{@number} received an unknown message: #{message[:type]}"
      end
      nil
    end

    def report_threads(server, **which)
      @control.say(:threads, threads: server ? BusyThreads.of(server, **which) : [])
    end

    def begin_profile(server, file, **how)
      return answer_profile(file, "the worker ends") unless server
      return answer_profile(file, "a profile of this worker is running already") if @profile&.running?

      @profile = Profile.new(server, file, **how) { |problem| @control.say(:profile, problem: problem) }
    end

    def answer_profile(file, problem)
      file.close
      @control.say(:profile, problem: problem)
    end

    def supervisor_gone = exit!(1)

    # careful:: whether the refork is an automatic one; it holds for the check after the last request as well.
    def report_fitness(careful:)
      @careful = careful
      problem = problem(serving: true)
      problem ? @control.say(:unfit, why: problem) : @control.say(:fit)
    end

    def problem(serving:)
      @fork_safety.problem(serving: serving) || (@holdings.problem(serving: serving) if @careful)
    end

    # Ends what only serves requests. If the process is still not fork-safe, it reports that to the supervisor, and
    # waits for the order to exit.
    def can_be_forked_from?
      Checkpoint.pass("worker.threads_joined")
      Hijack.end_all
      Highball.hooks.run(:before_refork, @number)
      @app.disconnect_databases
      Highball.leave_hub
      flush_files
      problem = problem(serving: false) or return true
      @control.say(:unfit, why: problem)
      nil until obey == :drain
      false
    rescue Exception => e # rubocop:disable Lint/RescueException -- hooks may raise anything
      give_up(e)
    end

    # What waits in Ruby's buffers would be written by each fork as well.
    def flush_files
      ObjectSpace.each_object(File) do |file|
        file.flush unless file.closed?
      rescue IOError, SystemCallError
        next # its own writer would have failed as well
      end
    end

    def report_heap(collect:)
      GC.start if collect
      @control.say(:heap, heap: Heap.figures)
    end

    # Closes everything of the worker that forked processes must not inherit.
    def become_mold
      Mold.ignore_group_signals
      [@news, @announce].each(&:close)
      PromotedMold.new(@control, @app, careful: @careful, may_refork: !@state.nil?)
    end

    def give_up(exception)
      fields = Diagnosis.fields_of(exception)
      boot = { step: @step, **fields } if @step
      @control.say(:failed, error: fields[:error], boot: boot)
      $stdout.flush
      exit!(1)
    end
  end
end
