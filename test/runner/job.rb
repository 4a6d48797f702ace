# frozen_string_literal: true

require "fileutils"
require "yaml"

# A step of bin/test, or a file of one: what to run, how long it may take, and how it ended.
class Job
  STEPS = YAML.load_file(File.join(__dir__, "steps.yml")).freeze
  LEVEL = ENV.fetch("HIGHBALL_TEST_LEVEL")
  LEVELS = %w[quick default full].freeze
  LEFT_OUT = { "quick" => %w[long very_long], "default" => %w[very_long], "full" => [] }.fetch(LEVEL)
  LOGS = FileUtils.mkdir_p(File.join(ENV.fetch("CARGO_TARGET_DIR"), "test-logs")).first
  MARKS = %w[alone few long very_long root debian13].freeze # see CONTRIBUTING.md
  DEFAULTS = { "needs" => [], "after" => [], "brings" => [], "marks" => [], "inside" => [], "environment" => {} }.freeze

  # The names of this level's steps.
  def self.steps_of_this_level
    STEPS.keys.select { |name| LEVELS.index(STEPS[name].fetch("level", "default")) <= LEVELS.index(LEVEL) }
  end

  # The step of this name, or its files; or the file of this name.
  def self.named(name)
    return [new(step_of(name), name)] if File.file?(name)

    files = STEPS.fetch(name) { abort "bin/test: there is no step #{name}; bin/test --list" }["files"]
    files ? Dir[*files].map { |file| new(name, file) }.select(&:of_this_level?) : [new(name)]
  end

  def self.step_of(file)
    step, = STEPS.find { |_, row| row["files"]&.any? { |glob| File.fnmatch?(glob, file, File::FNM_PATHNAME) } }
    step or abort "bin/test: #{file} belongs to no step"
  end

  attr_reader :step, :file, :marks, :seconds, :cpu_seconds
  attr_accessor :state # waiting, running, passed, failed or left out

  def initialize(step, file = nil)
    @step = step
    @file = file
    @row = DEFAULTS.merge(STEPS.fetch(step))
    # The words in a line `# marks: few, long (why)` above a file's class.
    @marks = file ? File.read(file, encoding: "UTF-8")[/^# marks: ([\w, ]+)/, 1].to_s.strip.split(", ") : @row["marks"]
    unknown = (marks - MARKS).first and abort "bin/test: #{file}: there is no mark #{unknown}; see CONTRIBUTING.md"
    @state = "waiting"
    @seconds = @cpu_seconds = 0
  end

  def name = [step, file].compact.join(" ")
  def kind = (%w[alone few] & marks).first || "with others"
  def needs = @row["needs"]
  def brings = @row["brings"]
  def comes_after = needs + @row["after"]
  def runs_again? = state == "failed" && (file || @row["again"])
  def result = state == "passed" && File.exist?(first_log) ? "flaky" : state
  def log = File.join(LOGS, "#{name.gsub('test/', '').tr(' /', '-').delete_suffix('.rb')}.log")
  def first_log = log.sub(/log\z/, "first.log")

  # Only root can run servers that do not run as root.
  def of_this_level?
    is_marked = [nil, *marks].include?(@row["mark"]) || LEVEL == "full"
    is_marked && !marks.intersect?(LEFT_OUT) && (@row["mark"] != "root" || Process.uid.zero?)
  end

  # Starts it in a process group, which its time limit or a signal ends as a whole: the group's number.
  def start
    state == "failed" ? FileUtils.mv(log, first_log) : FileUtils.rm_f(first_log)
    @state = "running"
    @began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    limit = ENV.fetch("HIGHBALL_TEST_SECONDS", (file ? 900 : 2400) * (LEVEL == "full" ? 10 : 1)).to_s
    words = file ? @row["inside"] + ["ruby", "-Ilib", "-Itest", file, "--verbose"] : ["bash", "-euxc", @row["run"]]
    words = ["timeout", "--verbose", "--kill-after=20", limit, *words]
    spawn(@row["environment"], *words, in: File::NULL, pgroup: true, %i[out err] => log)
  end

  def finish(status, cpu_seconds)
    @seconds = (Process.clock_gettime(Process::CLOCK_MONOTONIC) - @began).to_i
    @cpu_seconds = cpu_seconds.to_i
    @state = status.success? ? "passed" : "failed"
  end

  # How many tests passed, failed and were skipped, as cargo and Minitest print it. A job without numbers is one test.
  def counts
    return [0, 0, 0] if state == "left out"

    sums = Hash.new(0)
    lines = File.read(log).scrub.lines.grep(/^test result: |^\d+ runs, /)
    lines.join.scan(/(\d+) (\w+)/) { |number, what| sums[what] += number.to_i }
    passed = sums.values_at("passed", "runs").sum - sums.values_at("failures", "errors", "skips").sum
    failed = [sums.values_at("failed", "failures", "errors").sum, state == "failed" ? 1 : 0].max
    [sums.empty? && failed.zero? ? 1 : passed, failed, sums["skips"]]
  end
end
