# frozen_string_literal: true

require_relative "own_processes"
require_relative "process_facts"

# The processes of a server at rest, and the resources of each. Two servers in the same state have the same inventory,
# whatever their history.
module Inventory
  # `socket:[123]` is a socket, and `/folder/123.sock` the control socket of an instance.
  NUMBER = %r{:\[\d+\]\z|(?<=/)\d+(?=\.sock)}
  RING = "/memfd:highball-ring"
  OF_OPENER = ["anon_inode:[pidfd]", "socket"].freeze

  module_function

  # The open files of the processes of each role, the children of `highball`, and the mapped rings. nil if a process
  # ended meanwhile.
  def of(server)
    pids = server.pids
    roles = pids.group_by { |pid| role(pid, server) }
    open_files = roles.transform_values { |members| members.map { |pid| open_files(pid, server) }.sort_by(&:to_s) }
    counts = { children: children(server.pid), rings: rings(pids), rings_of_highball: rings(server.own_pids) }
    without_further_openers({ **open_files, **counts })
  rescue Errno::ENOENT, Errno::ESRCH
    nil
  end

  # A user has as many openers, up to three, as were busy at a time in the last minute. So those after the first depend
  # on the history: they are left out, with the socket and the pidfd that the server has of each.
  def without_further_openers(inventory)
    further = inventory.fetch(:opener, []).length - 1
    return inventory unless further.positive?

    server = inventory[:server].map do |files|
      files.to_h { |file, number| [file, OF_OPENER.include?(file) ? number - further : number] }
    end
    inventory.merge(server: server, opener: inventory[:opener].first(1), children: inventory[:children] - further)
  end

  def role(pid, server)
    return :highball if pid == server.pid
    return OwnProcesses.role(pid) if OwnProcesses.role(pid)

    ProcessFacts.command_line(pid)[/\Ahighball (mold|worker)/, 1]&.to_sym || :stranger
  end

  # The number of each kind: {"socket" => 7, "/memfd:highball-ring (deleted)" => 2}.
  def open_files(pid, server)
    Dir.children("/proc/#{pid}/fd").filter_map do |fd|
      File.readlink("/proc/#{pid}/fd/#{fd}").sub(NUMBER, "").sub(server.dir, "")
    rescue Errno::ENOENT
      nil # closed meanwhile
    end.tally.sort.to_h
  end

  # Includes zombies.
  def children(pid) = ProcessFacts.parents.count { |_, parent| parent == pid }

  # Memory files that these processes have mapped, each once.
  def rings(pids)
    maps = pids.flat_map { |pid| File.readlines("/proc/#{pid}/maps").grep(/#{RING}/o) }
    maps.map { |line| line.split[3, 2] }.uniq.length
  end
end
