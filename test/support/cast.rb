# frozen_string_literal: true

require_relative "deadline"
require_relative "own_processes"
require_relative "process_facts"

# The roles of a server's processes while things change, read from the kernel: `highball` itself may be waiting at a
# checkpoint, and cannot answer.
class Cast
  OWN = %i[spawner highball next_spawner next_highball].freeze

  # The processes before anything changes: the pid of the mold, and those of the workers by number.
  def self.old(server)
    workers = server.status.fetch("workers").to_h { |worker| worker.values_at("worker", "pid") }
    { mold: server.mold_pid, workers: workers }
  end

  # `waiting`: the process that waits at the step.
  def initialize(server, old, waiting)
    @server = server
    @old = old
    @waiting = waiting
  end

  # The pid of the process with this role.
  def pid_of(part)
    Deadline.wait("the #{part}") { find(part) }
  end

  private

  def find(part)
    case part
    when *OWN then own(part)
    when :newcomer, :intermediate then @waiting
    when :guardian then guardians.last
    when :companion then ProcessFacts.parents.key(guardians.last)
    when :canary, :next_worker then newcomers.find { |pid| title(pid).start_with?("highball worker") }
    when :next_mold then newcomers.first
    when :mold_of_next then newcomers(newcomers.first).first
    when :mold then @old.fetch(:mold, newcomers.first)
    when :worker then @old[:workers].except(chosen).values.last # the last that is retired
    when :chosen then @old[:workers][chosen]
    end
  end

  # Highball itself, or the process that takes over from it.
  def own(part)
    started = part.start_with?("next") ? newcomers.first : @server.pid
    part.end_with?("spawner") ? started : started&.then { |pid| @server.server_pid(pid) }
  end

  # The number of the worker that is promoted.
  def chosen = @server.log[/reforking.* worker=(\d+)/, 1]&.to_i

  # New children of `highball`, except for its server and openers, in the order of their start: a mold comes before its
  # workers.
  def newcomers(of = @server.pid)
    old = [@old[:mold], *@old[:workers].values]
    children = ProcessFacts.parents.filter_map { |pid, parent| pid if parent == of }
    others = (children - old - guardians).reject { |pid| OwnProcesses.role(pid) }
    others.select { |pid| ProcessFacts.alive?(pid) }.sort_by { |pid| [ProcessFacts.started_at(pid), pid] }
  rescue Errno::ENOENT, Errno::ESRCH
    []
  end

  # The processes that watch over companions, in the order of their start.
  def guardians
    all = ProcessFacts.tree(@server.pid).select { |pid| title(pid).start_with?("highball: companion") }
    all.sort_by { |pid| [ProcessFacts.started_at(pid), pid] }
  rescue Errno::ENOENT, Errno::ESRCH
    []
  end

  def title(pid) = ProcessFacts.command_line(pid)
end
