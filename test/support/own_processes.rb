# frozen_string_literal: true

require "fileutils"
require_relative "process_facts"

# The processes of Highball itself, as the kernel lists them. Usually there is one. If root starts the server for other
# users, the started process, whose pid is shown everywhere, is the spawner. Below it are the server, which reads
# clients' requests, and as many openers as are needed (docs/security.md).
module OwnProcesses
  TITLE = /\Ahighball: (server|opener|configuration|certificates)/
  # The server's user, if it is not root. Tests run in both modes: this variable outweighs their options.
  USER = ENV.fetch("HIGHBALL_SERVER_USER", "root")

  module_function

  # Whether servers that tests start as root have a spawner.
  def spawner? = Process.uid.zero? && USER != "root"

  # `:server`, `:opener`, `:configuration`, `:certificates`, or nil for all others, the spawner among them.
  def role(pid)
    ProcessFacts.command_line(pid)[TITLE, 1]&.to_sym
  rescue Errno::ENOENT, Errno::ESRCH
    nil
  end

  # The process that serves clients: the server below the started process, or that process if there is no spawner.
  def server(highball) = below(highball).find { |pid| role(pid) == :server } || highball

  # The process that was started, its server, and its openers.
  def of(highball) = [highball, *below(highball)].select { |pid| ProcessFacts.alive?(pid) }

  def below(highball)
    ProcessFacts.parents.filter_map { |pid, parent| pid if parent == highball && role(pid) }
  end

  # Gives the server, which may not be root, write access to this folder of a test.
  def let_use(folder)
    FileUtils.chown(USER, nil, folder) if spawner?
    folder
  end
end
