# frozen_string_literal: true

require "fileutils"
require_relative "process_facts"

# The processes of Highball itself, as the kernel lists them. Usually there is one. Where root starts the server for
# others, there is a spawner, which is the one that was started and whose pid everybody is told; below it the server,
# which reads what clients send; and openers, as many as there is need for (docs/security.md).
module OwnProcesses
  TITLE = /\Ahighball: (server|opener|configuration)/
  # The server's user where it is not root. Tests run in both modes: this variable outweighs their options.
  USER = ENV.fetch("HIGHBALL_SERVER_USER", "root")

  module_function

  # Whether servers that tests start as root have a spawner.
  def spawner? = Process.uid.zero? && USER != "root"

  # `:server`, `:opener`, `:configuration`, or nil for all others, the spawner among them.
  def role(pid)
    ProcessFacts.command_line(pid)[TITLE, 1]&.to_sym
  rescue Errno::ENOENT, Errno::ESRCH
    nil
  end

  # The one that serves clients, of the process that was started: its server, or itself where it has no spawner.
  def server(highball) = below(highball).find { |pid| role(pid) == :server } || highball

  # The process that was started, its server, and its openers.
  def of(highball) = [highball, *below(highball)].select { |pid| ProcessFacts.alive?(pid) }

  def below(highball)
    ProcessFacts.parents.filter_map { |pid, parent| pid if parent == highball && role(pid) }
  end

  # Lets the server, which may not be root, do in this folder of a test what it likes.
  def let_use(folder)
    FileUtils.chown(USER, nil, folder) if spawner?
    folder
  end
end
