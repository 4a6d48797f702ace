# frozen_string_literal: true

require "socket"
require_relative "busy_threads"
require_relative "checkpoint"
require_relative "control_socket"
require_relative "diagnosis"
require_relative "fork_safety"
require_relative "heap"
require_relative "hijack"
require_relative "promoted_mold"
require_relative "server"

module Highball
  # A process that serves: the child that the mold forked, from its first line to its exit, or until it becomes a mold.
  # Its main thread never serves; it waits for the supervisor's word and for signals.
  class Worker
    # `message` is the order to fork, `descriptors` what came with it: the ring's three, and the control socket. `app`
    # is nil where the mold has not loaded it; `found` is the detector that then loads it.
    def initialize(message, descriptors, app, found = nil)
      @number = message[:worker]
      @threads = message[:threads]
      @log_format = message[:log_format]
      @serving = message.slice(:development, :early_hints)
      *@ring_descriptors, control = descriptors
      @control = ControlSocket.new(control)
      @app = app
      @found = found
    end

    # Serves until it is told to end, or to become a mold: then it returns that mold.
    def start
      Native.exit_when_closed(@control.fileno)
      @fork_safety = ForkSafety.new
      Checkpoint.pass("worker.born")
      introduce
      Checkpoint.pass("worker.introduced")
      word = serve(set_up)
      return become_mold if word == :promote && can_be_forked_from?

      Highball.hooks.run(:before_worker_shutdown, @number)
      Checkpoint.pass("worker.exiting")
      exit(0) # with the application's at_exit blocks
    end

    private

    def introduce
      pidfd = IO.for_fd(Native.pidfd)
      @control.say(:hello, worker: @number, pid: Process.pid, descriptors: [pidfd])
      pidfd.close
    rescue Errno::EPIPE
      exit!(0) # the supervisor went while this was forked: nobody is left to be told
    end

    # The server, ready to serve. What goes wrong is told, and ends the process.
    def set_up
      @step = :start_worker
      settle
      load_app unless @app
      Highball.hooks.run(:after_fork, @number)
      server = open_server
      @step = nil
      server
    rescue Exception => e # rubocop:disable Lint/RescueException -- hooks may raise anything
      give_up(e)
    end

    # Makes the copy of the mold a process of its own.
    def settle
      Process.setproctitle("highball worker #{@number}: #{File.basename(App::FOLDER)}")
      Random.srand # or all workers would draw the same numbers
      @news, @announce = IO.pipe
      take_signals
    end

    def take_signals
      Mold.ignore_group_signals
      trap("TERM") { @announce.write_nonblock("t", exception: false) }
    end

    # Where the mold has not. A failure here is one of the spawn journey.
    def load_app
      @step = :load_app
      @app = App.load(App::FOLDER, @found)
      @step = :start_worker
      take_signals # once more: the application may have set its own
      @control.say(:booted, **@app.description, restartable: true)
    end

    def name = "worker #{@number}"

    # Nobody keeps it: its ring is closed when it is collected, if this process becomes a mold.
    def open_server
      numbers = @ring_descriptors.map do |io|
        io.autoclose = false # the ring owns them from now on
        io.fileno
      end
      log = Log.new(format: @log_format, worker: @number)
      Server.new(@app.rack_app, Ring.new(*numbers), threads: @threads, name: name, log: log, **@serving)
    end

    # Returns, when every request has been answered, why it does: `:drain` or `:promote`.
    def serve(server)
      serving = Thread.new do
        server.run
      ensure
        @announce.write_nonblock("e", exception: false)
      end
      serving.report_on_exception = true
      @control.say(:ready)
      Checkpoint.pass("worker.ready")
      word = wait_for_the_end(serving)
      Checkpoint.pass("worker.draining")
      @fork_safety.note_threads
      server.stop
      serving.join
      word
    end

    # Returns the supervisor's word that ends it. A TERM only asks it to: the front has to be told first, or requests
    # would wait in a ring that nobody reads.
    def wait_for_the_end(serving)
      loop do
        readable, = IO.select([@control, @news])
        word = hear if readable.include?(@control)
        return word if word
        next unless readable.include?(@news)

        @news.read_nonblock(16, exception: false)
        raise "the serving threads have ended by themselves" unless serving.alive?

        @control.say(:leaving)
      end
    end

    # Does what the supervisor says; returns it if that is for the one who serves.
    def hear
      message, = @control.receive
      exit!(1) unless message # the supervisor has gone
      case message[:type]
      when "drain" then return :drain
      when "promote" then return :promote
      when "may_promote" then tell_whether_fit
      when "heap" then tell_heap(collect: message[:gc])
      when "threads" then @control.say(:threads, threads: BusyThreads.of(name))
      else warn "highball: worker #{@number} was sent an unknown message: #{message[:type]}"
      end
      nil
    end

    def tell_whether_fit
      problem = @fork_safety.problem(serving: true)
      problem ? @control.say(:unfit, why: problem) : @control.say(:fit)
    end

    # What only serves requests ends. If something is in the way of a fork all the same, the supervisor is told, and
    # this process waits for its word to exit.
    def can_be_forked_from?
      Checkpoint.pass("worker.threads_joined")
      Hijack.close_all
      Highball.hooks.run(:before_refork, @number)
      problem = @fork_safety.problem(serving: false) or return true
      @control.say(:unfit, why: problem)
      nil until hear == :drain
      false
    rescue Exception => e # rubocop:disable Lint/RescueException -- hooks may raise anything
      give_up(e)
    end

    def tell_heap(collect:)
      GC.start if collect
      @control.say(:heap, heap: Heap.figures)
    end

    # Nothing of the worker is left to be inherited by what is forked from now on.
    def become_mold
      Mold.ignore_group_signals
      [@news, @announce].each(&:close)
      PromotedMold.new(@control, @app, threads: @threads)
    end

    def give_up(exception)
      diagnosis = Diagnosis.new(exception)
      boot = { step: @step, **diagnosis.fields } if @step
      @control.say(:failed, error: diagnosis.error, boot: boot)
      $stdout.flush
      exit!(1)
    end
  end
end
