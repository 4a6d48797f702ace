# frozen_string_literal: true

# marks: long

require "json"
require "open3"
require "shellwords"
require "timeout"
require_relative "../../support/e2e_test"
require_relative "../../support/process_facts"

# `highball bench`: its reports, its refusals, and that it leaves nothing behind.
class BenchTest < E2ETest
  QUICK = %w[--rounds 1 --seconds 1 --workers 1 --no-counts].freeze
  MEASURE = ["schemes", "--only", "highball", "--workload", "hello", *QUICK].freeze
  MOST_SECONDS = 150

  def setup
    super
    @folder = folder_with
    @output = File.join(@folder, "output")
    # Its files for servers are here, and it removes them when it ends.
    @temporary = File.join(@folder, "tmp")
    Dir.mkdir(@temporary)
  end

  def teardown
    left = ProcessFacts.with_environment("TMPDIR", @temporary) + below(@temporary)
    super
    assert_empty left
  end

  def test_a_run_is_reported_in_every_form
    needs("wrk")
    text, log, status = bench(*MEASURE[0..1], "highball,thin,floor", *MEASURE[3..])
    assert_predicate status, :success?, log
    assert_match(/^ +\S+ +Highball +\d/, text)
    results = JSON.parse(File.read(File.join(@output, "results.json")))
    assert_includes results["samples"].map { |sample| sample["scheme"] }, "highball"
    assert_empty(results["samples"].select { |sample| sample["errors"].values.sum.positive? })
    assert_match(/\A<!DOCTYPE html>.*Highball.*<svg/m, File.read(File.join(@output, "report.html")))
    written = File.read(File.join(@output, "RESULTS.md"))
    assert_includes written, "| Highball"
    assert_equal written, bench("report", File.join(@output, "results.json"), output: false).first
  end

  def test_objects_are_those_of_the_application
    needs("wrk")
    _, log, status = bench(*(MEASURE - ["--no-counts"]), "--workers", "2")
    assert_predicate status, :success?, log
    ruby = JSON.parse(File.read(File.join(@output, "results.json"))).dig("samples", 0, "ruby")
    # The answer's array, its hash and its body at least; a server that makes a hundred has another mistake.
    assert_includes 3.0..100.0, ruby["objects_per_request"]
    assert_operator ruby["gc_us_per_request"], :<, 1000
  end

  # (All rows take nine minutes.)
  def test_pstore_is_measured_beside_rubys
    command = [HighballServer::BINARY, "bench", "pstore", "--rounds", "1"]
    Open3.popen2e(environment, *command) do |_, out, run|
      rows = Timeout.timeout(MOST_SECONDS) { Array.new(4) { out.gets.to_s } }
      assert_match(/\A\| roots \|.*\| reads.s \| writes.s \|/, rows.first)
      measured = /\A\| 1 \| 10 \| 1 read, 0 write \| into the file/
      assert_match(/#{measured} \| Ruby's \| [1-9]\d* \| 0 \|/, rows[2])
      assert_match(/#{measured} \| Highball's \| [1-9]\d* \| 0 \| \d+\.\d× \|/, rows[3])
    ensure
      Process.kill(:INT, run.pid)
      run.join
    end
    wait_for("its readers to end") { ProcessFacts.with_environment("TMPDIR", @temporary).empty? }
  end

  def test_real_applications_are_measured_once
    arguments = %w[origins --workload blog --only highball --requests 200]
    text, log, status = bench(*arguments)
    assert_predicate status, :success?, log
    assert_match(/^blog:\n(?:.*\n)* +1  Highball +[\d.]+ requests.s, .*none failed\n(?:.*\n)* +10  Highball/, log)
    assert_match(/^\| Highball \|(?: [\d,.]+(?: \([\d,.–]+\))? \|){7} 0 \| [\d,]+ \|$/, text)
    page, picture = %w[ORIGINS.md origins.svg].map { |name| File.read(File.join(@output, name)) }
    processes = OwnProcesses.spawner? ? "[89]" : "[67]" # of root's server: also the spawner and an opener
    assert_match(/^\| blog \| Highball \|(?: [\d,.]+ \|){6} #{processes} \|$/, page, "memory and heaps")
    assert_match(/\. .*\b181 addresses, [\d.]+ KiB on average/, page)
    assert_includes picture, ">Highball</text>"
    _, log, status = bench(*arguments)
    assert_predicate status, :success?, log
    assert_match(/holds what was measured before \(1\)/, log)
    refute_match(/^blog:/, log)
    _, log, status = bench(*arguments[..-2], "300")
    refute_predicate status, :success?
    assert_match(/blog was measured with another load before \(200 requests\)/, log)
  end

  def test_variants_of_the_runtime_are_compared
    app = folder_with("config.ru" => "run ->(_env) { [200, { 'content-length' => '2' }, ['hi']] }\n")
    also = "--jit on RUBY_GC_HEAP_INIT_SLOTS=100000"
    text, log, status = bench("runtime", "--app", app, "--requests", "200", "--also", also, "--workers", "1")
    assert_predicate status, :success?, log
    ["by default", "jit off", "gc off", "jemalloc off", "all off", also].each do |variant|
      assert_match(/^\| #{Regexp.escape(variant)} \|(?: [\d,.]+(?: \([\d,.–]+\))? \|){8} 0 \|$/, text)
    end
    assert_includes File.read(File.join(@output, "RUNTIME.md")), "200 requests of 100 clients at a time"
  end

  def test_real_applications_are_not_measured_where_something_is_missing
    data = data_without_program("puma-cluster")
    _, log, status = bench("origins", "--only", "puma-cluster", env: { "HIGHBALL_BENCH" => data })
    refute_predicate status, :success?
    assert_match(/no-such-program.*apt-get install --no-install-recommends no-such-package/m, log)
  end

  def test_what_is_missing_is_named_with_its_package
    needs("wrk")
    data = data_without_program("missing")
    FileUtils.cp(File.join(HighballServer::ROOT, "bench/schemes/highball.toml"), File.join(data, "schemes"))
    text, log, status = bench("schemes", "--workload", "hello", *QUICK, env: { "HIGHBALL_BENCH" => data })
    assert_predicate status, :success?, log
    assert_match(/Not measured\n- missing: .*no-such-program.*apt-get install no-such-package/, text)
  end

  def test_what_cannot_be_done_is_an_error
    { %w[schemes --only no-such] => /there is no scheme no-such; there are: .*highball/,
      %w[schemes --workload no-such] => /there is no workload no-such; there are: .*hello/,
      ["--app", @folder] => /has no config\.ru/,
      ["--app", "/no/such"] => %r{the application folder /no/such},
      %w[schemes --rounds 0] => /--rounds/,
      %w[origins --workload hello] => /there is no workload hello in this benchmark; there are: blog, shop, redmine/,
      %w[schemes --bound=soon] => /milliseconds are wanted/,
      ["report", "/no/such.json"] => %r{results /no/such\.json} }.each do |arguments, words|
      _, log, status = bench(*arguments)
      refute_predicate status, :success?, arguments.inspect
      assert_match words, log
    end
    refute_path_exists @output
  end

  def test_reports_that_cannot_be_written_are_noticed_first
    @output = "/proc/no-such-folder"
    _, log, status = bench(*MEASURE)
    refute_predicate status, :success?
    assert_match(%r{cannot write reports to /proc/no-such-folder \(--output\)}, log)
    refute_match(/^blog:/, log)
  end

  def test_an_interrupt_leaves_nothing
    needs("wrk")
    { "INT" => "--seconds 30 --warm-up 1", "TERM" => "--seconds 1 --warm-up 30" }.each do |signal, lengths|
      log, status = interrupted(signal, [*MEASURE, *lengths.split]) { |pid| loaded?(pid) }
      refute_predicate status, :success?
      assert_match(/ended by a signal/, log)
      assert JSON.parse(File.read(File.join(@output, "results.json")))["interrupted"]
    end
  end

  def test_an_interrupt_while_a_server_starts_leaves_nothing
    needs("wrk")
    app = folder_with("config.ru" => "sleep 600\nrun ->(_env) { [200, {}, []] }\n")
    log, status = interrupted("TERM", ["--app", app, "--only", "puma", *QUICK]) { |pid| starting?(pid) }
    refute_predicate status, :success?
    assert_match(/was interrupted/, log)
  end

  def test_a_second_interrupt_does_no_harm
    needs("wrk")
    app = folder_with("config.ru" => "at_exit { sleep 1 }\nrun ->(_env) { [200, { 'content-length' => '0' }, []] }\n")
    arguments = ["--app", app, "--only", "puma", *QUICK, "--seconds", "30"]
    log, status = interrupted("INT", arguments, times: 2) { |pid| loaded?(pid) }
    refute_predicate status, :success?, log
  end

  def test_a_comparison_ends_soon
    needs("wrk")
    hello = File.join(HighballServer::ROOT, "bench/apps/hello")
    slow = folder_with("config.ru" => "run ->(_env) { sleep 0.2; [200, { 'content-length' => '0' }, []] }\n")
    _, status = interrupted("INT", ["--compare", slow, hello, *QUICK]) { |pid| loaded?(pid) }
    refute_predicate status, :success?
  end

  def test_the_best_way_for_an_application_is_a_sentence
    long
    needs("wrk")
    app = folder_with("config.ru" => "run ->(_env) { [200, { 'content-length' => '2' }, ['hi']] }\n")
    text, log, status = bench("--app", app, "--only", "highball", *QUICK)
    assert_predicate status, :success?, log
    answer = /Best for this application: Highball, \d workers? × \d threads?\. It answers [\d.]+ requests/
    assert_match(answer, text.gsub(/\s+/, " "))
  end

  def test_idle_connections_take_little_and_give_way
    skip "needs 11,000 open files" if Process.getrlimit(:NOFILE).last < 11_000
    text, log, status = bench("idle", "--rounds", "1", "--workers", "1")
    assert_predicate status, :success?, log
    round = JSON.parse(File.read(File.join(@output, "idle.json"))).dig("rounds", 0)
    assert_includes 0.5..10.0, round["idle_kib"], text
    assert_equal [100, 0], [round.dig("new_clients", "waited_ms").length, round.dig("new_clients", "refused")], text
    assert_includes 90..100, round.dig("new_clients", "closed"), text
    assert_includes text, "100 of 100 new clients were served"
  end

  private

  # The benchmark's data, with one scheme, whose program is not there.
  def data_without_program(scheme)
    text = <<~TOML
      title = "Not installed"
      server = "Missing"
      packages = ["no-such-package"]
      [[process]]
      command = ["no-such-program", "{port}"]
    TOML
    folder_with("schemes/#{scheme}.toml" => text).tap do |data|
      %w[apps workloads].each { |name| FileUtils.ln_s(File.join(HighballServer::ROOT, "bench", name), data) }
    end
  end

  def environment
    { "TMPDIR" => @temporary, "HIGHBALL_BENCH" => File.join(HighballServer::ROOT, "bench") }
  end

  # Runs it: [output, log, status].
  def bench(*arguments, output: true, env: {})
    arguments += ["--output", @output] if output
    command = [HighballServer::BINARY, "bench", *arguments]
    Open3.capture3(environment.merge(env), "timeout", "--kill-after=5", MOST_SECONDS.to_s, *command)
  end

  # Starts it, signals it when the block returns true, and waits for its end: [log, status].
  def interrupted(signal, arguments, times: 1)
    log = File.join(@folder, "log")
    command = [HighballServer::BINARY, "bench", *arguments, "--output", @output]
    pid = Process.spawn(environment, *command, %i[out err] => log, pgroup: true)
    wait_for("the moment to interrupt it; its log:\n#{File.read(log)}", within: 30) { yield pid }
    # Ctrl-C reaches all of its group.
    times.times { Process.kill(signal, signal == "INT" ? -pid : pid) }
    ended = wait_for("its end after #{signal}", within: 20) { Process.wait2(pid, Process::WNOHANG) }
    [File.read(log), ended.last]
  rescue Deadline::Missed
    warn File.read(log)
    kill(pid)
    raise
  end

  def kill(pid)
    Process.kill("KILL", pid)
    Process.wait(pid)
  end

  def loaded?(pid) = names(pid).include?("wrk")

  # Its server has started, and does not answer.
  def starting?(pid) = names(pid).any? { |name| name.match?(/puma|ruby/) }

  def names(pid)
    ProcessFacts.tree(pid).filter_map do |one|
      File.read("/proc/#{one}/comm").strip
    rescue SystemCallError
      nil
    end
  end

  def below(folder) = Dir.glob("**/*", File::FNM_DOTMATCH, base: folder) - ["."]
end
