# frozen_string_literal: true

require "json"
require "zlib"
require_relative "../../support/e2e_test"
require_relative "../../support/profiled_app"
require_relative "../../support/protocol_buffer"

# `highball profile`: where the time of a running application goes.
class ProfileTest < E2ETest
  include ProfiledApp

  def test_a_computing_method_is_on_top_by_cpu_time_and_a_sleeping_one_is_not_there
    server = serve(profiled_app, workers: 2, threads: 3)
    stacks = stacks(server, targets: %w[/compute /compute /rest])
    assert_operator own_share(stacks, "Shop.add_up"), :>, 0.6, stacks.inspect
    assert_operator share(stacks, "Shop.rest"), :<, 0.05, stacks.inspect
    stack = stacks.max_by(&:last).first
    assert_equal %w[Shop.compute Shop.until_later], stack & %w[Shop.compute Shop.until_later]
  end

  def test_a_sleeping_method_is_found_by_wall_time
    server = serve(profiled_app, workers: 2, threads: 3)
    stacks = stacks(server, "--mode", "wall", targets: %w[/rest /rest /rest])
    assert_operator share(stacks, "Shop.rest"), :>, 0.8, stacks.inspect
    # Of 3 clients for 2 seconds, as far as they ask without a pause. Threads that wait for a request would make it 12.
    assert_operator stacks.values.sum / 1e6, :<, 8
  end

  # A method whose threads all wait: no Ruby code runs at all.
  def test_stuck_threads_are_found_by_wall_time
    server = serve(folder_with("config.ru" => "def stuck = sleep\nrun ->(_) { stuck }"), "--request-timeout", "none",
                   "--drain-timeout", "1s", ready: nil)
    client = server.connect.tap { |connection| connection.send_request("GET", "/") }
    wait_for("the request to begin") { server.status["workers"].sum { |worker| worker["in_flight"] } == 1 }
    stacks = folded(profile(server, "--mode", "wall", "--seconds", "1", "-o", "-"))
    assert_operator stacks.sum { |stack, weight| stack.any?(/stuck/) ? weight : 0 }, :>, 700_000, stacks.inspect
    client.close
  end

  def test_allocations
    server = serve(profiled_app)
    stacks = stacks(server, "--mode", "allocations", targets: %w[/make])
    assert_operator share(stacks, "Shop.make_strings"), :>, 0.8, stacks.inspect
    assert_operator stacks.values.sum, :>, 10_000
  end

  def test_waiting_for_the_gvl
    server = serve(profiled_app, workers: 1, threads: 3)
    if RUBY_VERSION < "3.2"
      text = highball_fails("profile", "--mode", "gvl", "--seconds", "1", *server.which)
      return assert_match(/worker 1: the mode gvl needs Ruby 3.2|refuses: .*the mode gvl needs Ruby 3.2/, text)
    end

    stacks = stacks(server, "--mode", "gvl", targets: %w[/compute /compute /rest])
    assert_operator share(stacks, "Shop.compute"), :>, 0.6, stacks.inspect
  end

  def test_samples_are_grouped_by_path
    server = serve(profiled_app, threads: 3)
    secret = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijk"
    targets = ["/rest/17?a=b", "/rest/18", "/compute/#{secret}"]
    stacks = stacks(server, "--mode", "wall", "--group", "path", targets: targets)
    roots = stacks.each_with_object(Hash.new(0)) { |(stack, weight), sums| sums[stack.first] += weight }
    assert_operator roots["GET /rest/:id"], :>, 2e6, roots.inspect
    assert(roots.keys.any? { |root| root.start_with?("GET /compute/") }, roots.inspect)
    refute_match(/abcdefghijk|a=b|17/, roots.keys.join)
  end

  def test_the_samples_of_all_workers_become_one_profile
    server = serve(profiled_app, workers: 2, threads: 1)
    wait_for("both workers") { server.settled? }
    app = folder_with
    text = while_asked(server, *(%w[/compute] * 4)) do
      highball("profile", "--seconds", "1", *server.which, within: 60, directory: app)
    end
    assert_match(/^profile-highball-app.*\.html: \d+ samples of 2 workers; open it in a browser$/, text)
    assert_match(/^ *\d+\.\d%  Shop\.add_up  .*config\.ru:\d+$/, text)
    text = while_asked(server, "/compute") do
      highball("profile", "--seconds", "1", "--worker", "2", *server.which, within: 60, directory: app)
    end
    assert_match(/-2\.html: \d+ samples of 1 worker;/, text)
    assert_equal 2, Dir.children(app).length
  end

  def test_the_forms_of_the_file
    server = serve(profiled_app)
    place = folder_with
    paths = %w[a.html b.folded c.pb.gz d.json].map { |name| File.join(place, name) }
    paths.each do |path|
      while_asked(server, "/compute") { profile(server, "--seconds", "1", "--output", path) }
    end
    page, lines, buffer, json = paths.map { |path| File.binread(path) }
    assert_match(/<!DOCTYPE html>.*default-src 'none'.*Shop\.add_up/m, page)
    refute_match(%r{https?://}, page)
    assert_operator own_share(folded(lines), "Shop.add_up"), :>, 0.6
    assert_pprof Zlib.gunzip(buffer)
    assert_speedscope JSON.parse(json)
    text = highball_fails("profile", "--output", paths.first, *server.which)
    assert_match(/a\.html exists already, and is not overwritten/, text)
  end

  def test_a_second_profile_at_the_same_time_is_refused
    server = serve(profiled_app)
    first = Thread.new { profile(server, "--seconds", "4", "--output", "-") }
    worker = server.worker_pids.first
    wait_for("the first to begin") { ProcessFacts.sampled?(worker) }
    text = highball_fails("profile", "--seconds", "1", "--output", "-", *server.which)
    assert_match(/another profile of this application is running; try again when/, text)
    first.value
    profile(server, "--seconds", "1", "--output", "-")
  end

  def test_an_interrupted_profile_has_what_there_is
    server = serve(profiled_app)
    path = File.join(folder_with, "a.folded")
    while_asked(server, "/compute") do
      words = ["profile", "--seconds", "300", "--output", path, *server.which]
      pid = Process.spawn(HighballServer::ENVIRONMENT, HighballServer::BINARY, *words, %i[out err] => File::NULL)
      command = Process.detach(pid)
      worker = server.worker_pids.first
      wait_for("it to begin") { ProcessFacts.sampled?(worker) }
      sampled = Deadline.now + 1
      wait_for("some samples") { Deadline.now > sampled }
      HighballServer.kill(pid, "INT")
      assert command.join(20), "the command ends"
      assert_predicate command.value, :success?
    end
    assert_operator own_share(folded(File.read(path)), "Shop.add_up"), :>, 0.5
    profile(server, "--seconds", "1", "--output", "-")
  end

  def test_what_cannot_be_profiled
    server = serve(profiled_app)
    place = folder_with
    text = highball_fails("profile", "--worker", "7", "--seconds", "1", *server.which, directory: place)
    assert_match(/there is no worker 7 that serves/, text)
    assert_empty Dir.children(place), "no empty file is left"
    assert_match(/no Highball is running.*on port 1\b/m, highball_fails("profile", "--port", "1", directory: place))
    text = highball("profile", "--seconds", "1", *server.which, directory: place)
    assert_match(/There are no samples: nothing was computed|of 1 worker/, text)
  end

  # Deep recursion, and thousands of methods that are defined meanwhile.
  def test_a_profile_has_limits
    server = serve(profiled_app, threads: 3)
    while_asked(server, "/define", "/define", "/deep") { profile(server, "--seconds", "5", "--output", "-") }
    before = ProcessFacts.private_dirty_bytes(server.worker_pids)
    stacks = stacks(server, "--mode", "wall", targets: %w[/define /define /deep], seconds: 5)
    assert_operator stacks.keys.map(&:length).max, :<=, 514
    assert_includes stacks.keys.map(&:first), "(callers left out)"
    assert_operator stacks.keys.flatten.grep(/made_/).uniq.length, :>, 50
    after = ProcessFacts.private_dirty_bytes(server.worker_pids)
    assert_operator after - before, :<, 40 * MIB
  end

  # What the application forks meanwhile has no profile, and does not disturb it.
  def test_a_process_that_the_application_forks
    server = serve(profiled_app, threads: 3)
    stacks = stacks(server, targets: %w[/fork /compute])
    assert_operator own_share(stacks, "Shop.add_up"), :>, 0.5
    stacks = stacks(server, "--mode", "allocations", targets: %w[/fork /make])
    assert_operator share(stacks, "Shop.make"), :>, 0.5
  end

  # Workers are killed and replaced meanwhile.
  def test_many_profiles_under_load
    server = serve(profiled_app, workers: 2, threads: 3)
    modes = %w[cpu wall allocations]
    while_asked(server, "/compute", "/rest", "/make", "/define") do
      (LEVEL == "full" ? 60 : 6).times do |round|
        killed = Thread.new { disturb(server, round) }
        options = ["--mode", modes[round % 3], "--seconds", "1", "--output", "-"]
        text, = HighballServer.run("profile", *options, *server.which)
        assert_match(/;| ended before it answered|was not asked/, text)
        killed.join
      end
    end
    refute_match(/\[BUG\]|Segmentation|SIGSEGV|SIGABRT|protocol error/, server.log)
    profile(server, "--seconds", "1", "--output", "-")
  end

  private

  def disturb(server, round)
    sleep rand(0.2..0.8)
    case round % 3
    when 0 then HighballServer.kill(server.worker_pids.sample)
    when 1 then HighballServer.run("refork", *server.which)
    else HighballServer.run("restart", *server.which)
    end
  end

  def assert_pprof(bytes)
    profile = ProtocolBuffer.decode(bytes)
    texts = profile.fetch(6)
    assert_empty texts.first
    locations = locations(profile, texts)
    samples = messages(profile, 2).to_h do |sample|
      stack = ProtocolBuffer.numbers(sample[1].first).map { |id| locations.fetch(id) }
      [stack.reverse, ProtocolBuffer.numbers(sample[2].first).first]
    end
    assert_operator own_share(samples, "Shop.add_up"), :>, 0.6
    kind, unit = messages(profile, 1).first.values_at(1, 2).map { |(text)| texts[text] }
    assert_equal %w[cpu microseconds], [kind, unit]
  end

  # The names of methods, by the numbers of pprof's locations.
  def locations(profile, texts)
    names = messages(profile, 5).to_h { |function| [function[1].first, texts[function[2].first]] }
    messages(profile, 4).to_h do |location|
      [location[1].first, names.fetch(messages(location, 4).first[1].first)]
    end
  end

  def messages(message, field) = message.fetch(field).map { |bytes| ProtocolBuffer.decode(bytes) }

  def assert_speedscope(json)
    assert_equal "https://www.speedscope.app/file-format-schema.json", json["$schema"]
    profile = json.fetch("profiles").first
    assert_equal %w[sampled microseconds], profile.values_at("type", "unit")
    names = json.dig("shared", "frames").map { |frame| frame.fetch("name") }
    samples = profile["samples"].map { |stack| stack.map { |frame| names.fetch(frame) } }.zip(profile["weights"]).to_h
    assert_operator own_share(samples, "Shop.add_up"), :>, 0.6
    assert_equal samples.values.sum, profile["endValue"]
  end
end
