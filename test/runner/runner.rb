# frozen_string_literal: true

require_relative "job"

# Runs jobs side by side, in the order of the steps' dependencies, and what failed again at the end, alone.
class Runner
  # How many jobs of each kind run at a time, in the order in which the kinds have their turns. Most jobs wait much.
  AT_A_TIME = { "with others" => Integer(ENV.fetch("HIGHBALL_TEST_JOBS", Etc.nprocessors * 3)),
                "few" => Etc.nprocessors, "alone" => 1 }.freeze

  def initialize(jobs)
    @jobs = jobs
    @of_step = jobs.group_by { |job| job.step.name }
    @running = {} # by process group
  end

  def run
    %w[INT TERM HUP].each { |signal| trap(signal) { stop } }
    loop do
      start_jobs
      break if @running.empty?

      finish_one
    end
    run_failed_again
  end

  private

  # Starts the jobs that can start now: of the first kind of which any are left.
  def start_jobs
    kind = AT_A_TIME.keys.find { |one| @jobs.any? { |job| job.kind == one && !job.ended? } }
    @jobs.each do |job|
      next unless job.kind == kind && job.state == :waiting

      if in_vain?(job)
        job.state = :left_out
      elsif @running.length < AT_A_TIME[kind] && jobs_of(job.step.needs + job.step.after).all?(&:ended?)
        start(job)
      end
    end
  end

  # Tests of a failed build would only bury its message.
  def in_vain?(job) = jobs_of(job.step.needs).any? { |needed| %i[failed left_out].include?(needed.state) }

  def jobs_of(steps) = steps.flat_map { |name| @of_step.fetch(name, []) }

  def start(job) = @running[job.start] = job

  def finish_one
    pid, status = Process.wait2
    job = @running.delete(pid)
    job.finish(status)
    puts format("%<time>s  %<state>s %<seconds>5d s  %<name>s", time: Time.now.strftime("%T"), state: job.state,
                                                                seconds: job.seconds, name: job.name)
    print_end(job) if job.state == :failed
  end

  # The end of a failed job's log, and what else the machine was doing: a process left by another test may be the cause.
  def print_end(job)
    load = File.read("/proc/loadavg").split.first(3).join(" ")
    processes = `ps -eo pid,ppid,user:12,stat,etimes,pcpu,args --sort -pcpu`.scrub.lines(chomp: true).first(12)
    shown = File.readlines(job.log, chomp: true).last(40).map(&:scrub)
    shown.push("load #{load}; processes by their share of a CPU:", *processes.map { |line| line[0, 200] })
    puts(shown.map { |line| "    #{line}" })
  end

  def run_failed_again
    @jobs.select { |job| job.state == :failed && (job.file || job.step.again) }.each do |job|
      puts "again, alone: #{job.name}"
      start(job)
      finish_one
    end
  end

  def stop
    @running.each_key do |group|
      Process.kill("TERM", -group)
    rescue Errno::ESRCH
      next # it has ended at this very moment
    end
    warn "bin/test: stopped"
    exit! 130
  end
end
