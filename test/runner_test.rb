# frozen_string_literal: true

require "etc"
require "fileutils"
require "minitest/autorun"
require "open3"
require "tmpdir"
require_relative "support/deadline"

# bin/test, on a tree of a few files.
class RunnerTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  PASSES = "def test_it = pass"
  FAILS = "def test_it = flunk('no luck')"
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
    FileUtils.mkdir_p(%w[bin test/e2e/http].map { |name| File.join(@root, name) })
    FileUtils.cp(File.join(ROOT, "bin/test"), File.join(@root, "bin"))
    FileUtils.cp_r(File.join(ROOT, "test/runner"), File.join(@root, "test"))
  end

  def teardown
    FileUtils.rm_rf(@root)
  end

  def test_all_pass
    output = assert_passes("test/a_test.rb" => PASSES, "test/e2e/http/b_test.rb" => PASSES)
    assert_equal "2 passed, 0 failed", output.lines(chomp: true).last
    assert_match(%r{passed +\d+ s, +\d+ s of a CPU  ruby test/a_test.rb$}, output)
    assert_match(/^e2e +\d+ s  1 passed$/, output)
    assert_match(%r{^\d+ \d+ e2e test/e2e/http/b_test.rb$}, File.read(File.join(@root, "target/test-logs/durations")))
  end

  def test_files_run_again_with_a_server_that_is_not_root
    skip "needs root" unless Process.uid.zero?
    server = "def test_it = assert_equal('nobody', ENV['HIGHBALL_SERVER_USER'])"
    write_file("test/e2e/http/a_test.rb", server, "# marks: long, root")
    write_file("test/e2e/http/b_test.rb", FAILS)
    output, ended = run_steps("e2e-root")
    assert_predicate ended, :success?, output
    assert_match(%r{passed .* e2e-root test/e2e/http/a_test.rb$}, output)
    output, ended = run_steps("e2e", "HIGHBALL_SERVER_USER" => nil)
    refute_predicate ended, :success?, output
  end

  def test_a_mark_leaves_a_file_to_slower_runs
    write_file("test/e2e/http/a_test.rb", PASSES)
    write_file("test/e2e/http/b_test.rb", PASSES, "# marks: long (it waits)")
    write_file("test/e2e/http/c_test.rb", PASSES, "# marks: very_long, debian13")
    files = { "--quick" => 1, "default" => 2, "--full" => 3 }
    files.each do |level, count|
      output, = run_steps(*[level, "e2e"].grep_v("default"))
      assert_equal "#{count} passed, 0 failed", output.lines(chomp: true).last
    end
  end

  def test_a_level_has_its_steps_and_a_step_that_is_named_runs_at_each
    write_steps <<~YAML
      always: { level: quick, run: "true" }
      usually: { run: "true" }
      before a release: { level: full, run: "true" }
    YAML
    { [] => 2, ["--quick"] => 1, ["--full"] => 3, ["before a release"] => 1 }.each do |typed, count|
      output, = run_steps(*typed)
      assert_equal "#{count} passed, 0 failed", output.lines(chomp: true).last
    end
  end

  def test_what_fails_twice_has_failed
    output, ended = run_files("test/a_test.rb" => PASSES, "test/b_test.rb" => FAILS)
    refute_predicate ended, :success?, output
    assert_equal "1 passed, 1 failed", output.lines(chomp: true).last
    assert_match(/Failure:\n.*no luck.*^again, alone: ruby test.b_test.rb\n.*Failure:\n.*no luck/m, output)
    assert_match(%r{^ruby +\d+ s  1 passed, 1 failed\n  failed: ruby test/b_test.rb$}, output)
    refute_match(/flaky/, output)
  end

  def test_what_passes_alone_is_flaky_and_named
    output = assert_passes("test/a_test.rb" => FLAKY, "test/b_test.rb" => PASSES)
    assert_match(%r{^ruby +\d+ s  1 flaky, 1 passed\n  flaky: ruby test/a_test.rb$}, output)
    assert_match(/^ +(?:\d+\) )?Failure:\n.*not yet.*^again, alone.*what failed before:\n.*not yet/m, output)
    assert_equal "2 passed, 0 failed", output.lines(chomp: true).last
  end

  def test_what_runs_alone_or_with_few_others_does_so_at_the_end
    files = { "alone" => "# marks: alone, long", "few1" => "# marks: few (it measures)", "few2" => "# marks: few",
              "few3" => "# marks: few, debian13", "other1" => "", "other2" => "" }
    files.each { |name, above| write_file("test/#{name}_test.rb", noting(name.delete("0-9")), above) }
    output, ended = run_steps(*files.keys.map { |name| "test/#{name}_test.rb" })
    assert_predicate ended, :success?, output
    notes = File.readlines(File.join(@root, "notes"), chomp: true)
    assert_equal %w[other few alone], notes.map { |note| note[/\w+/] }.uniq
    assert_equal [4, 6, 2], notes.chunk_while { |one, next_one| one[/\w+/] == next_one[/\w+/] }.map(&:length)
    assert_operator most_at_once(notes.grep(/few/)), :<=, Etc.nprocessors
  end

  def test_fewer_run_at_a_time_while_the_processors_are_busy
    files = Array.new(Etc.nprocessors * 4) { |number| "test/busy#{number}_test.rb" }
    files.each { |file| write_file(file, noting("busy", "40_000_000.times { nil }")) }
    output, ended = run_steps(*files, "HIGHBALL_TEST_JOBS" => files.length.to_s)
    assert_predicate ended, :success?, output
    most = most_at_once(File.readlines(File.join(@root, "notes"), chomp: true))
    assert_operator most, :<, files.length
    assert_operator most, :>=, Etc.nprocessors
  end

  def test_the_slowest_of_the_last_run_comes_first
    files = %w[test/a_test.rb test/b_test.rb test/c_test.rb]
    FileUtils.mkdir_p(File.join(@root, "target/test-logs"))
    File.write(File.join(@root, "target/test-logs/durations"), "9 1 ruby test/b_test.rb\n2 2 ruby test/c_test.rb\n")
    files.each { |file| write_file(file, PASSES) }
    output, = run_steps(*files, "HIGHBALL_TEST_JOBS" => "1")
    assert_equal %w[b c a], output.scan(%r{passed .* ruby test/(.)_test}).flatten
  end

  def test_skipped_tests_are_counted_and_a_file_that_breaks_off_has_failed
    output, = run_files("test/a_test.rb" => "def test_it = skip", "test/b_test.rb" => "exit!(3)")
    assert_equal ["1 skipped", "0 passed, 1 failed"], output.lines(chomp: true).last(2)
  end

  def test_a_file_that_hangs_is_ended_with_its_processes
    # Some versions of Minitest leave the cursor behind the test's name.
    hangs = "def test_it\nputs\n$stdout.flush\nFile.write('pid', spawn('sleep', '1000'))\nsleep\nend"
    write_file("test/a_test.rb", hangs)
    output, ended = run_steps("test/a_test.rb", "HIGHBALL_TEST_SECONDS" => "2")
    assert_equal 1, ended.exitstatus, output
    assert_match(/^ +timeout: sending signal TERM to command/, output)
    assert_equal "0 passed, 1 failed", output.lines(chomp: true).last
    wait_for_the_end_of(File.join(@root, "pid"))
  end

  def test_a_run_that_is_stopped_leaves_nothing_behind
    write_file("test/a_test.rb", "def test_it\nFile.write('pid', Process.pid)\nsleep\nend")
    runner = spawn(environment, File.join(@root, "bin/test"), "test/a_test.rb", %i[out err] => File::NULL)
    pid = File.join(@root, "pid")
    Deadline.wait("the test to begin") { File.size?(pid) }
    Process.kill("TERM", runner)
    assert_equal 130, Process.wait2(runner).last.exitstatus
    wait_for_the_end_of(pid)
  end

  def test_steps_come_after_others_and_are_left_out_if_those_have_failed
    write_steps <<~YAML
      ends: { after: [breaks], run: "cp breaks ends" }
      needs: { needs: [breaks], run: "touch needs" }
      breaks: { run: "echo was before >breaks; false" }
      needs that: { needs: [needs], again: true, run: "touch needs" }
    YAML
    output, ended = run_steps
    assert_equal 1, ended.exitstatus, output
    assert_equal "was before\n", File.read(File.join(@root, "ends"))
    refute_path_exists File.join(@root, "needs")
    assert_match(/^needs that +0 s  1 left out$/, output)
    lines = output[/^== summary.*/m].lines.grep(/ \d+ s  /)
    assert_equal ["ends", "needs", "breaks", "needs that"], (lines.map { |line| line[/\w+( that)?/] })
    assert_equal "1 passed, 1 failed", output.lines(chomp: true).last
  end

  def test_a_step_of_rust_runs_again_and_its_numbers_count
    write_steps <<~YAML
      rust:
        again: true
        run: |
          echo "test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out"
          rm seen || { touch seen; false; }
          echo "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"
    YAML
    output, ended = run_steps
    assert_predicate ended, :success?, output
    assert_equal ["  flaky: rust", "12 passed, 0 failed"], output.lines(chomp: true).last(2)
  end

  def test_mistakes_are_errors
    write_file("test/a_test.rb", PASSES, "# marks: alon")
    { "no-such-step" => "there is no step no-such-step; bin/test --list", "--fast" => "there is no step --fast;",
      "test/a_test.rb" => "test/a_test.rb: there is no mark alon" }.each do |typed, message|
      output, ended = run_steps(typed)
      refute_predicate ended, :success?
      assert_includes output, "bin/test: #{message}"
    end
  end

  private

  def noting(name, work = "100.times { Thread.pass }")
    <<~RUBY
      def note(what) = File.write("notes", "#{name} \#{what}\\n", mode: "a")

      def test_it
        note("begins")
        #{work}
        note("ends")
      end
    RUBY
  end

  def most_at_once(notes)
    running = 0
    notes.map { |note| running += note.end_with?("begins") ? 1 : -1 }.max
  end

  # Of the process with the number in this file.
  def wait_for_the_end_of(file)
    Deadline.wait("the test's process to end") { !File.exist?("/proc/#{File.read(file)}") }
  end

  def assert_passes(files)
    output, ended = run_files(files)
    assert_predicate ended, :success?, output
    output
  end

  # Runs these files: [output, Process::Status].
  def run_files(files)
    files.each { |path, body| write_file(path, body) }
    run_steps(*files.keys)
  end

  def run_steps(*steps, **variables)
    Open3.capture2e(environment.merge(variables.transform_keys(&:to_s)), File.join(@root, "bin/test"), *steps)
  end

  # With this line above its class.
  def write_file(path, body, above = "")
    name = "T#{File.basename(path, '.rb').delete('^a-z0-9')}"
    text = "#{above}\nrequire 'minitest/autorun'\nclass #{name} < Minitest::Test\n#{body}\nend\n"
    File.write(File.join(@root, path), text)
  end

  # These steps in the place of the real ones.
  def write_steps(table) = File.write(File.join(@root, "test/runner/steps.yml"), table)

  def environment = { "CARGO_TARGET_DIR" => nil, "HIGHBALL_TEST_JOBS" => "4", "HIGHBALL_TEST_LEVEL" => nil }
end
