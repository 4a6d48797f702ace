# frozen_string_literal: true

# Highball, as applications see it: its version, and the hooks that they may set.
#
# How an application gets served, in reading order: Highball::Mold boots it (highball/boot, journey, app,
# diagnosis) and forks a Highball::Worker for each order that comes over its Highball::ControlSocket;
# the worker's Highball::Server takes requests from its ring.
#
# This file is loaded before Bundler is, so it must require nothing but Highball's own files. It is also what Bundler
# requires for `gem "highball"`: in a process that starts servers it makes Highball the default one
# (highball/default_handler).
module Highball
  require_relative "highball/version"
  require_relative "highball/hooks"
  require_relative "highball/host_system"
  require_relative "highball/default_handler"

  # Hooks are set in config/highball.rb, which is loaded before the application, or anywhere in the application.
  @hooks = Hooks.new

  class << self
    # The hooks that were set so far.
    attr_reader :hooks

    # Runs the block in a process that is about to be forked from: in the mold, after it has loaded the application and
    # before the first fork, and in a worker that becomes a mold. Close here what processes must not share.
    # (Active Record's connections are closed before every fork anyway.)
    def before_fork(&block) = hooks.add(:before_fork, block)

    # Runs the block in each new worker before it serves: open again here what before_fork closed. The
    # worker's number is given to it.
    def after_fork(&block) = hooks.add(:after_fork, block)

    # Runs the block in a worker that has finished its last request and is about to exit. The worker's
    # number is given to it.
    def before_worker_shutdown(&block) = hooks.add(:before_worker_shutdown, block)

    # Runs the block in a worker that has finished its last request and becomes a mold: end here what only serves
    # requests, such as threads. The before_fork blocks run after it. The worker's number is given to it.
    def before_refork(&block) = hooks.add(:before_refork, block)

    # Puma's names.
    alias before_worker_boot after_fork
    alias on_worker_boot after_fork
    alias on_worker_shutdown before_worker_shutdown
    alias on_refork before_refork

    # Sends a message to all clients whose held responses name this stream (docs/server-sent-events.md). Returns its id
    # when the server has it, and raises PublishError if it does not. `event` is the type of the event in browsers.
    # Elsewhere than on Linux there is no such server: says so once, and returns nil.
    def publish(stream, data, event: nil)
      return say_not_published unless HostSystem.linux?

      require_relative "highball/publisher"
      @publisher = Publisher.new unless @publisher&.pid == Process.pid # a fork must not use the same connections
      @publisher.publish(stream, data, event)
    end

    # Closes the connections for messages: a worker that becomes a mold must not pass them on to its forks.
    def leave_hub
      @publisher&.close
      HubThread.all.dup.each(&:stop) if const_defined?(:HubThread, false)
    end

    # From now on no worker of this application is promoted to mold: the process is no longer fork-safe.
    def fork_unsafe!(why = "the application has called Highball.fork_unsafe!")
      @fork_unsafe = why
    end

    # The reason given to fork_unsafe!, or nil.
    attr_reader :fork_unsafe

    private

    def say_not_published
      return if @not_published

      @not_published = true
      $stderr.write("highball: Highball.publish sends messages on Linux only; this is #{HostSystem.name}\n")
      nil
    end
  end

  DefaultHandler.install
  if defined?(::ActiveSupport) && ::ActiveSupport.respond_to?(:on_load)
    ::ActiveSupport.on_load(:action_dispatch_system_test_case) { require_relative "highball/system_tests" }
  end
end
