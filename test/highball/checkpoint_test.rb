# frozen_string_literal: true

require "minitest/autorun"
require "tmpdir"
require "highball/checkpoint"
require "highball/journey"
require_relative "../support/deadline"

class CheckpointTest < Minitest::Test
  STEP = Highball::Checkpoint::STEPS.first
  ROOT = File.expand_path("../..", __dir__)

  def test_without_a_folder_nothing_is_looked_at
    assert_nil Highball::Checkpoint.pass("whatever", folder: nil)
  end

  def test_a_step_that_no_test_asked_for_is_passed
    Dir.mktmpdir do |folder|
      assert_nil Highball::Checkpoint.pass(STEP, folder: folder)
      assert_empty Dir.children(folder)
    end
  end

  def test_it_waits_as_long_as_the_file_is_there_and_says_who_waits
    Dir.mktmpdir do |folder|
      asked = File.join(folder, STEP)
      File.write(asked, "")
      waiting = Thread.new { Highball::Checkpoint.pass(STEP, folder: folder) }
      Deadline.wait("arrival") { File.exist?("#{asked}.reached") }
      assert_equal Process.pid.to_s, File.read("#{asked}.reached")
      assert_predicate waiting, :alive?
      File.delete(asked)
      assert waiting.join(5)
    end
  end

  def test_names_are_those_of_the_table
    Dir.mktmpdir do |folder|
      assert_raises(ArgumentError) { Highball::Checkpoint.pass("../elsewhere", folder: folder) }
    end
  end

  # The code passes every step of the two tables, and no other.
  def test_the_tables_are_the_truth
    ruby = passed("lib/**/*.rb") + Highball::Journey::STEPS.drop(1).map { |step| "mold.#{step}" }
    assert_equal Highball::Checkpoint::STEPS.sort, ruby.uniq.sort
    table = File.read(File.join(ROOT, "crates/supervisor/src/checkpoint.rs"))[/STEPS: .*?\];/m]
    assert_equal table.scan(/"([\w.]+)"/).flatten.sort, passed("crates/**/*.rs").uniq.sort
  end

  private

  # By name, or as one of a list of steps.
  def passed(pattern)
    sources = Dir[File.join(ROOT, pattern)].map { |path| File.read(path) }
    sources.flat_map do |source|
      lists = source.scan(/: Steps =\s*\[([^\]]*)\]/).flatten
      named = source.scan(/(?:(?i:checkpoint)(?:(?:::|\.)pass)?|owner\.passes)\("([\w.]+)"\)/)
      named + lists.map { |list| list.scan(/"([\w.]+)"/) }
    end.flatten
  end
end
