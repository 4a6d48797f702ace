# frozen_string_literal: true

require "etc"
require "fileutils"
require "minitest/autorun"
require "open3"
require "tmpdir"

# bin/test, on a tree of a few files.
class RunnerTest < Minitest::Test
  SCRIPT = File.expand_path("../bin/test", __dir__)
  PASSES = "def test_it = pass"
  FAILS = "def test_it = flunk('no luck')"
  FEW = "# Runs with few others: it measures\n"
  # Fails the first time.
  FLAKY = <<~RUBY
    def test_it
      seen = File.exist?("seen")
      File.write("seen", "")
      assert seen, "not yet"
    end
  RUBY

  def setup
    @root = Dir.mktmpdir("highball runner's größe") # a tree may lie anywhere
    FileUtils.mkdir_p(%w[bin test/e2e].map { |name| File.join(@root, name) })
    FileUtils.cp(SCRIPT, File.join(@root, "bin"))
  end

  def teardown
    FileUtils.rm_rf(@root)
  end

  def test_all_pass
    output, ended = run_files("test/a_test.rb" => PASSES, "test/e2e/b_test.rb" => PASSES)
    assert_predicate ended, :success?, output
    assert_equal "2 passed, 0 failed", output.lines(chomp: true).last
    assert_match(%r{passed +\d+ s  ruby test/a_test.rb$}, output)
    assert_match(%r{^\d+ e2e test/e2e/b_test.rb$}, File.read(File.join(@root, "target/test-logs/durations")))
  end

  def test_files_run_again_with_a_server_that_is_not_root
    skip "needs root" unless Process.uid.zero?
    write_files("test/e2e/a_test.rb" => "def test_it = assert_equal('nobody', ENV['HIGHBALL_SERVER_USER'])")
    output, ended = run_steps("e2e-root", "HIGHBALL_TEST_LEVEL" => "full")
    assert_predicate ended, :success?, output
    assert_match(%r{passed +\d+ s  e2e-root test/e2e/a_test.rb$}, output)
    output, ended = run_steps("e2e", "HIGHBALL_SERVER_USER" => nil)
    refute_predicate ended, :success?, output
  end

  # A renamed file would silently run nowhere, or twice.
  def test_the_files_that_are_named_exist
    lists = File.read(SCRIPT).scan(/^files_\w+=\((.*?)\)/m).flatten
    assert_equal 3, lists.length
    lists.each do |named|
      refute_empty named.split
      named.split.each { |name| assert_path_exists File.join(__dir__, "e2e/#{name}_test.rb") }
    end
  end

  def test_what_fails_twice_has_failed
    output, ended = run_files("test/a_test.rb" => PASSES, "test/b_test.rb" => FAILS)
    refute_predicate ended, :success?, output
    assert_equal "1 passed, 1 failed", output.lines(chomp: true).last
    assert_match(/== what failed in ruby.*no luck/m, output)
    refute_match(/^flaky/, output)
  end

  def test_what_passes_alone_is_flaky_and_named
    output, ended = run_files("test/a_test.rb" => FLAKY, "test/b_test.rb" => PASSES)
    assert_predicate ended, :success?, output
    assert_equal ["flaky: ruby test/a_test.rb", "2 passed, 0 failed"], output.lines(chomp: true).last(2)
  end

  def test_what_runs_alone_or_with_few_others_does_so_at_the_end
    files = { "alone" => "# Runs alone: it has to\n", "few1" => FEW, "few2" => FEW, "few3" => FEW,
              "other1" => "", "other2" => "" }
    files.each { |name, above| write_file("test/#{name}_test.rb", noting(name.delete("0-9")), above) }
    output, ended = run_steps(*files.keys.map { |name| "test/#{name}_test.rb" }, "HIGHBALL_TEST_JOBS" => "4")
    assert_predicate ended, :success?, output
    notes = File.readlines(File.join(@root, "notes"), chomp: true)
    assert_equal %w[other few alone], notes.map { |note| note[/\w+/] }.uniq
    assert_equal [4, 6, 2], notes.chunk_while { |one, next_one| one[/\w+/] == next_one[/\w+/] }.map(&:length)
    assert_operator most_at_once(notes.grep(/few/)), :<=, Etc.nprocessors
  end

  def test_skipped_tests_are_counted_and_a_file_that_breaks_off_has_failed
    output, = run_files("test/a_test.rb" => "def test_it = skip", "test/b_test.rb" => "exit!(3)")
    assert_equal ["1 skipped", "0 passed, 1 failed"], output.lines(chomp: true).last(2)
  end

  def test_an_unknown_step_is_an_error
    output, ended = Open3.capture2e(environment, File.join(@root, "bin/test"), "no-such-step")
    assert_equal 2, ended.exitstatus
    assert_match(/there is no step no-such-step/, output)
  end

  private

  def noting(name)
    <<~RUBY
      def note(what) = File.write("notes", "#{name} \#{what}\\n", mode: "a")

      def test_it
        note("begins")
        100.times { Thread.pass }
        note("ends")
      end
    RUBY
  end

  def most_at_once(notes)
    running = 0
    notes.map { |note| running += note.end_with?("begins") ? 1 : -1 }.max
  end

  # Runs these files: [output, Process::Status].
  def run_files(files)
    write_files(files)
    Open3.capture2e(environment, File.join(@root, "bin/test"), *files.keys)
  end

  def run_steps(*steps, variables) = Open3.capture2e(environment.merge(variables), File.join(@root, "bin/test"), *steps)

  def write_files(files) = files.each { |path, body| write_file(path, body) }

  # With this line above its class.
  def write_file(path, body, above = "")
    name = "T#{File.basename(path, '.rb').delete('^a-z0-9')}"
    text = "require 'minitest/autorun'\n#{above}class #{name} < Minitest::Test\n#{body}\nend\n"
    File.write(File.join(@root, path), text)
  end

  def environment = { "CARGO_TARGET_DIR" => nil, "HIGHBALL_TEST_JOBS" => "4" }
end
