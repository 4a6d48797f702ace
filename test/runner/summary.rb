# frozen_string_literal: true

require_relative "runner"

# The end of a run: failures again, as they are hard to find in a long log, what took longest, and a line for each step.
class Summary
  DURATIONS = File.join(Tree::LOGS, "durations")

  # The seconds that jobs took in the last run, by their names.
  def self.last_durations
    lines = File.exist?(DURATIONS) ? File.readlines(DURATIONS, chomp: true) : []
    lines.to_h { |line| line.split(" ", 2).reverse }.transform_values(&:to_i)
  end

  def initialize(jobs, seconds)
    @jobs = jobs
    @seconds = seconds
  end

  # Prints it, and returns whether all passed.
  def print
    @jobs.each { |job| print_failures(job) }
    slowest = @jobs.sort_by { |job| [-job.seconds, job.name] }
    File.write(DURATIONS, slowest.map { |job| "#{job.seconds} #{job.name}\n" }.join)
    puts "\n== what took longest (all of it: #{DURATIONS})"
    slowest.first(10).each { |job| puts "#{job.seconds.to_s.rjust(6)} s  #{job.name}" }
    puts "\n== summary"
    @jobs.group_by(&:step).sort_by { |step, _| Steps::ALL.index(step) }.each { |step, jobs| puts line_of(step, jobs) }
    puts "\n#{@seconds} s in all, #{Runner::AT_A_TIME['with others']} at a time; logs are in #{Tree::LOGS}"
    print_totals
  end

  private

  def print_failures(job)
    logs = { "#{job.name}, the first time" => job.first_log, job.name => job.log } if job.state == :failed
    logs = { "#{job.name}, which then passed" => job.first_log } if job.flaky?
    logs.to_h.select { |_, log| File.exist?(log) }.each do |title, log|
      lines = File.readlines(log, chomp: true).map(&:scrub)
      found = lines.each_index.select { |at| lines[at].match?(/^( +\d+\) )?(Failure|Error):|^---- .* stdout ----$/) }
      shown = found.flat_map { |at| lines[at, 10] }.first(120)
      puts("\n== what failed in #{title}", shown.map { |line| line[0, 2000] })
    end
  end

  def line_of(step, jobs)
    failed, left_out = %i[failed left_out].map { |state| jobs.count { |job| job.state == state } }
    result = failed.zero? ? "passed" : "FAILED"
    result += " (#{jobs.length - failed - left_out} of #{jobs.length} files)" if jobs.length > 1
    result = "not run: a step that it needs has failed" unless left_out.zero?
    format("%<step>-18s %<seconds>5d s  %<result>s", step: step.name, seconds: jobs.sum(&:seconds), result: result)
  end

  def print_totals
    counts = @jobs.reject { |job| job.state == :left_out }.map(&:counts)
    passed, failed, skipped = [[0, 0, 0], *counts].transpose.map(&:sum)
    @jobs.select(&:flaky?).each { |job| puts "flaky: #{job.name}" }
    puts "#{skipped} skipped" unless skipped.zero?
    puts "#{passed} passed, #{failed} failed"
    failed.zero?
  end
end
