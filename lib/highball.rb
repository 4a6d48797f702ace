# frozen_string_literal: true

# Highball, as applications see it: its version, and the hooks that they may set.
#
# How an application gets served, in reading order: Highball::Mold boots it (highball/boot, journey, app,
# diagnosis) and forks a Highball::Worker for each order that comes over its Highball::ControlSocket;
# the worker's Highball::Server takes requests from its ring.
#
# This file is loaded before Bundler is, so it must require nothing but Highball's own files.
module Highball
  require_relative "highball/version"
  require_relative "highball/hooks"

  # Hooks are set in config/highball.rb, which is loaded before the application, or anywhere in the application.
  @hooks = Hooks.new

  class << self
    # The hooks that were set so far.
    attr_reader :hooks

    # Runs the block in a process that is about to be forked from: in the mold, when the application is loaded and
    # before the first fork, and in a worker that becomes a mold. Close here
    # what must not be shared between processes. (Connections of ActiveRecord are closed anyway, before every fork.)
    def before_fork(&block) = hooks.add(:before_fork, block)

    # Runs the block in each new worker before it serves: open again here what before_fork closed. The
    # worker's number is given to it.
    def after_fork(&block) = hooks.add(:after_fork, block)

    # Runs the block in a worker that has finished its last request and is about to exit. The worker's
    # number is given to it.
    def before_worker_shutdown(&block) = hooks.add(:before_worker_shutdown, block)

    # Runs the block in a worker that has finished its last request and becomes a mold: end here what only serves
    # requests, threads above all. What before_fork runs comes after it. The worker's number is given to it.
    def before_refork(&block) = hooks.add(:before_refork, block)

    # Puma's names.
    alias before_worker_boot after_fork
    alias on_worker_boot after_fork
    alias on_worker_shutdown before_worker_shutdown
    alias on_refork before_refork

    # From now on no worker of this application is promoted to mold: something was done that does not stand a fork.
    def fork_unsafe!(why = "the application has called Highball.fork_unsafe!")
      @fork_unsafe = why
    end

    # Why not, or nil.
    attr_reader :fork_unsafe
  end
end
