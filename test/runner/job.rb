# frozen_string_literal: true

require_relative "tree"

# A step, or a file of one: what to run, how long it may take, and how it ended.
class Job
  FILE_SECONDS = 900
  STEP_SECONDS = 2400
  # The exit code of timeout(1), and the one of a command that it has to kill.
  OVERDUE = [124, 137].freeze

  attr_reader :step, :file, :kind, :seconds, :pid
  attr_accessor :state # :waiting, :running, :passed, :failed or :left_out

  def initialize(step, file = nil)
    @step = step
    @file = file
    @marks = file ? Tree.marks_of(file) : step.marks
    @kind = %w[alone few].find { |mark| @marks.include?(mark) } || "with others"
    @state = :waiting
    @seconds = 0
  end

  def name = [step.name, file].compact.join(" ")
  def ended? = %i[passed failed left_out].include?(state)
  def flaky? = state == :passed && File.exist?(first_log)
  def log = File.join(Tree::LOGS, "#{name.gsub('test/', '').tr(' /', '-').delete_suffix('.rb')}.log")
  def first_log = log.sub(/log\z/, "first.log")

  # A file that takes long comes early. If no earlier run tells how long it takes, its mark and its size do.
  def expected_seconds(last) = last.fetch(name) { (@marks.include?("long") ? 60 : 0) + (File.size(file) / 1000) }

  # Starts it in a process group, which its time limit or a signal ends as a whole.
  def start
    FileUtils.mv(log, first_log) if state == :failed
    @state = :running
    @began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    limit = (file ? FILE_SECONDS : STEP_SECONDS) * (Tree.full? ? 10 : 1)
    command = ["timeout", "--kill-after=20", ENV.fetch("HIGHBALL_TEST_SECONDS", limit).to_s, *step.command(file)]
    @pid = spawn(step.environment, *command, in: File::NULL, %i[out err] => log)
  end

  def finish(status)
    @seconds = (Process.clock_gettime(Process::CLOCK_MONOTONIC) - @began).to_i
    @state = status.success? ? :passed : :failed
    File.write(log, "Error: ended by its time limit\n", mode: "a") if OVERDUE.include?(status.exitstatus)
  end

  # How many tests passed, failed and were skipped, as cargo and Minitest print it. A job without numbers is one test.
  def counts
    output = File.read(log).scrub
    rust = output.scan(/^test result: .* (\d+) passed; (\d+) failed;/).map { |found| [*found.map(&:to_i), 0] }
    ruby = output.scan(/^(\d+) runs, .* (\d+) failures, (\d+) errors, (\d+) skips$/).map do |found|
      runs, failures, errors, skips = found.map(&:to_i)
      [runs - failures - errors - skips, failures + errors, skips]
    end
    passed, failed, skipped = [[0, 0, 0], *rust, *ruby].transpose.map(&:sum)
    failed = 1 if state == :failed && failed.zero?
    [[passed, failed, skipped].sum.zero? ? 1 : passed, failed, skipped]
  end
end
