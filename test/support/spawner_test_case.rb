# frozen_string_literal: true

require_relative "tenants_test_case"

# A test of a server that root has started for tenants, and of its spawner.
class SpawnerTestCase < TenantsTestCase
  # For tests of the usual ways to choose the server's user: the variable would outweigh the file.
  UNCHOSEN = { "HIGHBALL_SERVER_USER" => nil }.freeze

  private

  def front_of(server) = children_named(server, :server).first

  def children_named(server, role)
    ProcessFacts.tree(server.pid).select { |pid| OwnProcesses.role(pid) == role }
  end

  def openers_of(server, user)
    uid = Etc.getpwnam(user).uid.to_s
    children_named(server, :opener).select { |pid| status_of(pid)["Uid"].to_s.split.first == uid }
  end

  def name_of(pid)
    File.read("/proc/#{pid}/comm").strip
  rescue Errno::ENOENT, Errno::ESRCH
    ""
  end

  def status_of(pid)
    File.readlines("/proc/#{pid}/status").to_h { |line| line.strip.split(":\t", 2).push("").first(2) }
  rescue Errno::ENOENT, Errno::ESRCH
    {}
  end

  def victims_worker(server) = facts(server, { "Host" => HOSTS[VICTIM] })["pid"]
end
