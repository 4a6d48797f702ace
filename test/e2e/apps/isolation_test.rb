# frozen_string_literal: true

require_relative "../../support/many_apps_test_case"

# Ten applications on one server; three of them do harm.
class IsolationTest < ManyAppsTestCase
  BURNERS = File.expand_path("../../apps/burners", __dir__)
  WELL = Array.new(7) { |number| "well-#{number + 1}" }.freeze
  # The memory that the allocating application may add.
  MOST_BYTES = 64 * 1024 * 1024
  LOOP_AT_ONE_PATH = <<~RUBY
    run lambda { |env|
      File.write(ENV.fetch("BURNS"), "loop\\n", mode: "a") if env["PATH_INFO"] == "/loop"
      loop {} if env["PATH_INFO"] == "/loop"
      [200, {}, ["well"]]
    }
  RUBY
  ENDS_WITHIN = 120 # seconds, on a machine that has much else to do

  def test_seven_notice_nothing_of_one_that_does_not_boot_one_that_loops_and_one_that_allocates
    long
    server = serve_ten
    before = pids(server).slice(*WELL)
    during_requests(server, *WELL, clients: 1) do
      burning = Thread.new { [ask_for(server, "loop"), *Array.new(3) { ask_for(server, "allocate") }] }
      try_to_mend(boots: 3)
      assert_equal [504, 502, 502, 502], burning.value, server.log
    end
    assert_equal before, pids(server).slice(*WELL), "none of them was restarted"
    assert_equal({ "loop" => 1, "allocate" => 3 }, burnt.tally.except("crash"))
    WELL.each { |name| assert_equal [name, before[name].last], ask(server, name, "/").values_at(0, 3) }
    assert_reported(server)
  end

  def test_a_restart_ends_a_loop
    @folder = folder_with("loop/config.ru" => LOOP_AT_ONE_PATH, "well/config.ru" => echo("well"), "burns" => "")
    applications = { "well" => "", "loop" => "variables = { BURNS = '#{@folder}/burns' }\nrequest_timeout = 'none'" }
    File.write(File.join(@folder, "highball.toml"), "drain_timeout = '500ms'\n#{entries(applications)}")
    server = serve_many(@folder)
    server.connect do |connection|
      connection.send_request("GET", "/loop", { "Host" => "loop" })
      wait_for("the loop", within: ENDS_WITHIN) { burnt == ["loop"] }
      highball("restart", "loop", *server.which, within: ENDS_WITHIN)
      assert_equal 502, connection.read_response(within: ENDS_WITHIN).status
    end
    assert_equal "well", server.get("/", { "Host" => "loop" }, within: ENDS_WITHIN).body
    assert_equal ["loop"], burnt, "it does not go on in the worker that has taken its place"
  end

  private

  def serve_ten
    @folder = folder_with(WELL.to_h { |name| ["#{name}/config.ru", echo(name)] }.merge("burns" => ""))
    FileUtils.cp_r("#{BURNERS}/.", @folder)
    variables = "variables = { BURNS = '#{@folder}/burns', BURNER_BYTES = '#{MOST_BYTES}' }\n"
    applications = WELL.to_h { |name| [name, ""] }.merge(
      "crash" => variables,
      "loop" => "#{variables}request_timeout = '1s'",
      "allocate" => "#{variables}request_timeout = 'none'"
    )
    File.write(File.join(@folder, "highball.toml"), "drain_timeout = '1s'\n#{entries(applications)}")
    serve_many(@folder).tap do |server|
      WELL.each { |name| assert_equal name, ask(server, name, "/").first }
      wait_for("the first boot", within: ENDS_WITHIN) { app(server, "crash")["phase"] == "failed" }
    end
  end

  # The burners that have started, once for each start.
  def burnt = File.readlines(File.join(@folder, "burns"), chomp: true)

  # The status of the answer. (Uses POST, because a GET would be repeated if its worker dies.)
  def ask_for(server, burner)
    server.request("POST", "/", { "Host" => burner }, "", within: ENDS_WITHIN).status
  end

  # Changes it again and again, so that it boots again and again.
  def try_to_mend(boots:)
    wait_for("boot #{boots}", within: ENDS_WITHIN) do
      File.write(File.join(@folder, "crash/attempt"), burnt.length.to_s)
      burnt.count("crash") >= boots
    end
  end

  # The server runs, and reports the problem of each of the three.
  def assert_reported(server)
    assert_equal 503, ask_for(server, "crash")
    wait_for("the last boot to fail", within: ENDS_WITHIN) { phases(server)["crash"] == "failed" }
    crash = app(server, "crash")
    assert_equal "exception", crash.dig("diagnosis", "cause")
    assert_includes crash["last_failure"], "this application never boots"
    assert_includes app(server, "loop")["overruns"].map { |overrun| overrun["request"] }, "POST /"
    %w[loop allocate].each do |name|
      wait_for("an idle worker of #{name} in the place of the lost one", within: ENDS_WITHIN) do
        app(server, name)["workers"].map { |worker| worker.values_at("state", "in_flight") } == [["serving", 0]]
      end
    end
    assert_match(/worker \d+ died: /, app(server, "allocate")["last_failure"])
    wait_for("workers that last", within: ENDS_WITHIN) { phases(server).except("crash").values.uniq == ["serving"] }
  end

  # The phase of each application in `highball status`: {"loop" => "serving"}.
  def phases(server)
    plain = highball("status", *server.which)
    plain.scan(/^  (\S+) +([a-z]+) +\d/).to_h
  end
end
