# frozen_string_literal: true

require_relative "steps"
require_relative "summary"

# The command line of bin/test.
module Main
  LEVELS = { "--quick" => "quick", "--full" => "full" }.freeze
  OF_FOLDER = { "test/e2e" => "e2e", "test/gems" => "gems" }.freeze

  module_function

  def run(arguments)
    ENV["HIGHBALL_TEST_LEVEL"] = LEVELS.fetch(arguments.shift) if LEVELS.key?(arguments.first)
    Tree.enter
    case arguments
    in ["--list"] then puts Steps::LISTED.map(&:name)
    in ["--step", name] then Steps.named(name).body.call
    in [/\A-/ => option, *] then raise Mistake, "there is no option #{option}; see the head of this file"
    else exit run_jobs(jobs(arguments))
    end
  rescue Mistake => e
    warn "bin/test: #{e.message}"
    exit 2
  end

  def run_jobs(jobs)
    $stdout.sync = true
    FileUtils.mkdir_p(Tree::LOGS)
    FileUtils.rm_f(Dir[File.join(Tree::LOGS, "*.first.log")])
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    Runner.new(jobs).run
    Summary.new(jobs, (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).to_i).print
  end

  # First the steps, and then files, of which those come first that are expected to take longest.
  def jobs(names)
    names = Steps::LISTED.select { |step| step.quick || Tree.level != "quick" }.map(&:name) if names.empty?
    jobs = names.flat_map { |name| name.start_with?("test/") ? Job.new(step_of(name), name) : Steps.named(name).jobs }
    # Tests of gems need those of these sources, whichever steps are named.
    jobs += Steps.named("gems-build").jobs if jobs.any? { |job| job.step.name == "gems" }
    last = Summary.last_durations
    files, steps = jobs.uniq(&:name).partition(&:file)
    steps + files.sort_by { |job| [-job.expected_seconds(last), job.name] }
  end

  def step_of(file) = Steps.named(OF_FOLDER.fetch(file[%r{\Atest/\w+}], "ruby"))
end

Main.run(ARGV)
