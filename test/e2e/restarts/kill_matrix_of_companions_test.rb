# frozen_string_literal: true

# marks: root

require_relative "../../support/kill_matrix_test_case"

# kill -9 of every process, at every step in the life of a process that runs beside the workers, as a program and forked
# from the mold.
class KillMatrixOfCompanionsTest < KillMatrixTestCase
  # Notes that it begins, and whether an earlier process is still there.
  JOBS = <<~'RUBY'
    journal = ENV.fetch("JOURNAL")
    version = File.read(File.join(__dir__, "version"))
    earlier = File.exist?(journal) ? File.readlines(journal).map { |line| line.split.first.to_i } : []
    is_there = ->(pid) { File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] != "Z" rescue false }
    others = earlier.select(&is_there)
    File.write(journal, "#{Process.pid} #{version} #{others.any? ? 'overlaps' : 'alone'}\n", mode: "a")
    trap("TERM") { exit }
    sleep
  RUBY

  DEATHS = { mold: :jobs, worker: :jobs }.freeze
  RESTARTS = { next_mold: :new_jobs, canary: :new_jobs }.freeze
  PLAIN = {
    %w[companion.gone companion.ordered] => DEATHS,
    %w[companion.started] => { guardian: :jobs, companion: :jobs, **DEATHS }
  }.freeze
  FORKED = {
    %w[fork.intermediate fork.worker_forked] => { intermediate: :jobs, **DEATHS },
    %w[companion.forked] => { newcomer: :jobs, **DEATHS },
    %w[companion.born] => { newcomer: :jobs, guardian: :jobs, **DEATHS },
    **PLAIN
  }.freeze
  RESTARTED = {
    %w[companion.ending companion.started] => { guardian: :new_jobs, companion: :new_jobs, **RESTARTS },
    %w[companion.gone companion.ordered] => RESTARTS
  }.freeze

  USUAL = [
    [:plain_death, "companion.started", :guardian], [:plain_death, "companion.gone", :mold],
    [:forked_death, "fork.intermediate", :intermediate], [:forked_death, "companion.forked", :newcomer],
    [:forked_death, "companion.born", :mold], [:forked_death, "companion.born", :highball],
    [:plain_restart, "companion.ending", :companion], [:plain_restart, "companion.ordered", :highball],
    [:forked_restart, "companion.gone", :next_mold], [:forked_restart, "companion.started", :guardian]
  ].freeze

  matrix({ plain_death: PLAIN, forked_death: FORKED, plain_restart: RESTARTED, forked_restart: RESTARTED },
         usual: USUAL)

  def setup
    super
    @journal = File.join(folder_with, "journal")
    @releases.each { |folder| File.write(File.join(folder, "jobs.rb"), JOBS) }
  end

  private

  # --- scenarios: see KillMatrixTest

  def plain_death(&) = death(&)
  def forked_death(&) = death(&)
  def plain_restart(&) = restart(&)
  def forked_restart(&) = restart(&)

  def death
    serve_with_checkpoints
    under_load do
      HighballServer.kill(journal.last.first.to_i)
      kill_at_the_step
      yield
    end
  end

  def serve_with_checkpoints
    super
    wait_for("the jobs") { running_jobs }
  end

  # --- outcomes

  def jobs
    serves
    wait_for("the next jobs", within: WITHIN) { journal.length > 1 && running_jobs }
    assert_equal ["alone"], journal.map(&:last).uniq
  end

  def new_jobs
    serves
    wait_for("the next version's jobs", within: WITHIN) { running_jobs&.fetch(1) == "2" }
    assert_equal ["alone"], journal.map(&:last).uniq
  end

  # --- parts

  def options
    file = File.join(folder_with("highball.toml" => <<~TOML), "highball.toml")
      [[process]]
      name = "jobs"
      command = "ruby jobs.rb"
      fork = #{forked?}
      env = { JOURNAL = "#{@journal}" }
    TOML
    [*super, "--config", file]
  end

  def forked? = name.include?("forked")
  def kind_of_server = forked?

  # What the jobs have noted that run: the last line, split.
  def running_jobs
    running = @server.status["apps"].first.fetch("processes").select { |one| one["state"] == "running" }
    journal.last if running.map { |one| one["pid"] } == [journal.last&.first.to_i]
  end

  def settled?(status)
    super && status["apps"].first.fetch("processes").all? { |one| one["state"] == "running" }
  end

  def journal = File.exist?(@journal) ? File.readlines(@journal, chomp: true).map(&:split) : []
end
