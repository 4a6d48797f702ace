# frozen_string_literal: true

require "socket"
require_relative "binary"
require_relative "mold"
require_relative "worker"

module Highball
  # The process that received an application as an object. Such an application cannot be booted again, so this process
  # itself is the mold. It starts `highball`, forks the workers as its own children, and reaps them.
  class CallerMold < Mold
    # `arguments` are the arguments of `highball serve`.
    def initialize(rack_app, arguments)
      Extension.load
      ours, theirs = ::Socket.pair(:UNIX, :SEQPACKET)
      super(ControlSocket.new(ours))
      @app = App.new(rack_app)
      @highball = spawn_highball(arguments, in: theirs)
      theirs.close
    end

    # Serves until `highball` has ended: its Process::Status.
    def start
      replaced = take_signals
      prepare_fork
      @control.say(:booted, **@app.description, restartable: false)
      serve_orders
      Process.wait2(@highball).last
    ensure
      replaced&.each { |signal, handler| trap(signal, handler || "DEFAULT") }
    end

    # Asks `highball` to drain and end. Safe in a signal handler.
    def stop
      @control.say(:stop)
    rescue SystemCallError, IOError
      nil # it is ending already
    end

    private

    def spawn_highball(arguments, environment = {}, **streams)
      environment = Binary.environment.merge("HIGHBALL_MOLD" => "stdin").merge(environment)
      Process.spawn(environment, Binary.path, "serve", *arguments, **streams)
    end

    # From a terminal `highball` gets INT as well; being asked to stop twice is no harm.
    def take_signals
      %w[INT TERM].to_h { |signal| [signal, trap(signal) { stop }] }
    end

    def fork_process(message, descriptors)
      pid = Process.fork { become_worker(message, descriptors).start }
      Process.detach(pid)
      nil
    end
  end
end
