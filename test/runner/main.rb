# frozen_string_literal: true

require "etc"
require_relative "job"
require_relative "load"

# Runs jobs side by side, in the order of their steps, and what failed again at the end, alone.
class Runner
  # How many jobs of each kind run at most at a time, in the order in which the kinds have their turns. Most jobs wait
  # much. Where they do not, fewer run: one for each processor, and more as long as the load is not full.
  AT_A_TIME = { "with others" => Integer(ENV.fetch("HIGHBALL_TEST_JOBS", Etc.nprocessors * 4)),
                "few" => Etc.nprocessors, "alone" => 1 }.freeze
  # Tests of a failed build would only bury its message.
  IN_VAIN = ["failed", "left out"].freeze
  ENDED = ["passed", *IN_VAIN].freeze
  # The seconds, and the seconds of a CPU, that each job has taken in the last run.
  DURATIONS = File.join(Job::LOGS, "durations")
  FAILURE = /^( +\d+\) )?(Failure|Error):|^---- .* stdout ----$|^timeout: /

  # First the steps, and then files, of which those come first that have taken longest.
  def initialize(names)
    names = Job.steps_of_this_level if names.empty?
    jobs = names.flat_map { |name| Job.named(name) }
    jobs += jobs.flat_map(&:brings).flat_map { |name| Job.named(name) }
    files, steps = jobs.uniq(&:name).partition(&:file)
    last = last_durations
    @jobs = steps + files.sort_by { |job| [-last.fetch(job.name, job.marks.include?("long") ? 60 : 1).to_i, job.name] }
    @of_step = @jobs.group_by(&:step)
    @running = {} # by process group
    @load = Load.new
    @began = Time.now
  end

  def run
    %w[INT TERM HUP].each { |signal| trap(signal) { stop } }
    finish_jobs while start_jobs.any?
    @jobs.select(&:runs_again?).each do |job|
      puts "again, alone: #{job.name}"
      start(job)
      finish_jobs while @running.any?
      print_lines(["what failed before:", *failures_in(job.first_log).first(40)]) if job.result == "flaky"
    end
    print_summary
  end

  private

  def last_durations
    lines = File.exist?(DURATIONS) ? File.readlines(DURATIONS, chomp: true) : []
    lines.to_h { |line| line.split(" ", 3).values_at(2, 0) }
  end

  # Starts the jobs that can start now, of the first kind of which any are left. Returns all that run.
  def start_jobs
    @jobs.each { |job| job.state = "left out" if job.state == "waiting" && states(job.needs).intersect?(IN_VAIN) }
    left = @jobs.reject { |job| ENDED.include?(job.state) }
    kind = AT_A_TIME.keys.find { |one| left.map(&:kind).include?(one) }
    left.select { |job| job.kind == kind && job.state == "waiting" }.each do |job|
      start(job) if room?(kind) && (states(job.comes_after) - ENDED).empty?
    end
    @running
  end

  def room?(kind)
    @running.length < AT_A_TIME[kind] && (@running.length < Etc.nprocessors || !@load.full?)
  end

  def start(job)
    @running[job.start] = job
    @load.job_begins
  end

  def states(steps) = @of_step.values_at(*steps).flatten.compact.map(&:state)

  # Waits a moment, and takes the jobs that have ended.
  def finish_jobs
    sleep 0.2
    @load.look
    while (pid, status, used = ended_process)
      finish(pid, status, used)
    end
  end

  # The pid, the status, and the seconds of a CPU, of a process that has ended; nil without one.
  def ended_process
    before = Process.times
    ended = @running.any? && Process.wait2(-1, Process::WNOHANG) or return
    used = Process.times.then { |after| after.cutime + after.cstime - before.cutime - before.cstime }
    [*ended, used]
  end

  def finish(pid, status, used)
    job = @running.delete(pid).tap { |one| one.finish(status, used) }
    puts "#{Time.now.strftime('%T')}  #{job.state} #{figures(job)}"
    print_failure(job) if job.state == "failed"
  end

  def figures(job) = "#{job.seconds.to_s.rjust(5)} s, #{job.cpu_seconds.to_s.rjust(4)} s of a CPU  #{job.name}"

  # Its failures, or the end of its log, and what else the machine did: a process left by another test may be the cause.
  def print_failure(job)
    processes = `uptime; ps -eo pid,ppid,user:12,stat,etimes,pcpu,args --sort -pcpu`.scrub.lines(chomp: true)
    log_end = lines_of(job.log).last(30)
    print_lines([*failures_in(job.log).first(120), "the end of #{job.log}:", *log_end, *processes.first(13)])
  end

  def failures_in(log)
    lines = lines_of(log)
    lines.each_index.select { |at| lines[at].match?(FAILURE) }.flat_map { |at| lines[at, 12] }
  end

  def lines_of(log) = File.readlines(log, chomp: true).map(&:scrub)
  def print_lines(lines) = puts(lines.map { |line| "    #{line[0, 300]}" })

  def stop
    @running.each_key do |group|
      Process.kill("TERM", -group)
    rescue Errno::ESRCH
      next # it has ended at this very moment
    end
    warn "bin/test: stopped"
    exit! 130
  end

  # What took longest, a line for each step, and what failed. Returns whether all passed.
  def print_summary
    slowest = @jobs.sort_by { |job| [-job.seconds, job.name] }
    File.write(DURATIONS, slowest.map { |job| "#{job.seconds} #{job.cpu_seconds} #{job.name}\n" }.join)
    puts("\n== what took longest (all of it: #{DURATIONS})", slowest.first(10).map { |job| figures(job) })
    puts "\n== summary, after #{(Time.now - @began).to_i} s"
    (Job::STEPS.keys & @of_step.keys).each { |step| print_step(step, @of_step.fetch(step)) }
    passed, failed, skipped = [[0, 0, 0], *@jobs.map(&:counts)].transpose.map(&:sum)
    puts "#{skipped} skipped" unless skipped.zero?
    puts "#{passed} passed, #{failed} failed"
    failed.zero?
  end

  def print_step(step, jobs)
    results = jobs.group_by(&:result)
    counts = results.map { |result, ones| "#{ones.length} #{result}" }.join(", ")
    puts "#{step.ljust(18)} #{jobs.sum(&:seconds).to_s.rjust(5)} s  #{counts}"
    results.slice("flaky", "failed").each { |result, ones| puts(ones.map { |job| "  #{result}: #{job.name}" }) }
  end
end

$stdout.sync = true
ARGV == ["--list"] ? puts(Job::STEPS.keys) : exit(Runner.new(ARGV).run)
