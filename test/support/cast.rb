# frozen_string_literal: true

require_relative "deadline"
require_relative "process_facts"

# Who is who among a server's processes while things change, by what the kernel says: `highball` itself may be waiting
# at a checkpoint, and cannot be asked.
class Cast
  # `mold` and `worker`: pids of old ones, as far as there are any. `waiting`: the process that waits at the step.
  def initialize(server, old, waiting)
    @server = server
    @old = old
    @waiting = waiting
  end

  # The pid of the process that plays this part.
  def pid_of(part)
    Deadline.wait("the #{part}") { find(part) }
  end

  private

  def find(part)
    case part
    when :highball then @server.pid
    when :newcomer, :intermediate then @waiting
    when :canary then newcomers.find { |pid| title(pid).start_with?("highball worker") }
    when :next_mold then newcomers.first
    when :mold, :worker then @old.fetch(part, newcomers.first)
    end
  end

  # Children of `highball` that were not there before, in the order of their start: a mold is before its workers.
  def newcomers
    old = @old.values.flatten
    children = ProcessFacts.parents.filter_map { |pid, parent| pid if parent == @server.pid }
    (children - old).select { |pid| ProcessFacts.alive?(pid) }.sort_by { |pid| [ProcessFacts.started_at(pid), pid] }
  rescue Errno::ENOENT, Errno::ESRCH
    []
  end

  def title(pid) = ProcessFacts.command_line(pid)
end
