# frozen_string_literal: true

require "json"
require_relative "../../support/action_cable_tests_app"
require_relative "../../support/debian_source"
require_relative "../../support/e2e_test"
require_relative "../../support/redis_server"

# Action Cable's own tests pass in a worker of Highball: those of adapters with Highball's, those of clients with
# WebSockets that Highball holds, and all others with what Highball adds to Action Cable. They are in Debian's source
# of the Rails that is installed, which is downloaded.
#
# marks: debian13, few (their longest waits are 2 seconds)
class ActionCableTestsTest < E2ETest
  ENDS_WITHIN = 300 # seconds
  # The tests that fail, and why.
  HELD = {
    "ClientTest#test_unsubscribe_client" => "ActionCable.server.connections is empty: Highball has the connections",
    "ClientTest#test_server_restart" => "ActionCable.server.restart closes the WebSockets of a process: it has none"
  }.freeze

  def setup
    super
    @app = folder_with(ActionCableTestsApp::FILES)
    version, = Open3.capture2(RbConfig.ruby, "-e", "require 'action_cable'; print ActionCable.version")
    DebianSource.unpack("rails", version, *ActionCableTestsApp::PARTS, into: @app)
  rescue DebianSource::Unreachable => e
    raise unless LEVEL == "quick"

    skip "no source of Rails: #{e.message}"
  end

  def test_adapter
    passes("adapter", at_least: 9)
  end

  def test_adapter_in_a_script
    serve(@app, env: { "TESTS" => "adapter" })
    code = "Rack::Builder.parse_file('config.ru'); puts OwnTests.call('QUERY_STRING' => 'seed=#{Minitest.seed}').last"
    environment = HighballServer::ENVIRONMENT.merge("TESTS" => "adapter", "HIGHBALL_HUB" => nil)
    output, status = Open3.capture2(environment, RbConfig.ruby, "-I", File.join(HighballServer::ROOT, "lib"), "-rrack",
                                    "-e", code, chdir: @app)
    assert_predicate status, :success?
    check(output, at_least: 9)
  end

  def test_adapter_with_several_machines
    skip "no Redis" unless RedisServer.program
    redis = RedisServer.new
    passes("adapter", at_least: 9, env: { "BUS_URL" => redis.url })
  ensure
    redis&.finish
  end

  def test_held_web_sockets
    passes("held", at_least: 6, failing: HELD)
  end

  # (ActionCable.server has the connections of its process.)
  def test_relayed_web_sockets
    passes("relayed", "--hold-cable", "off", at_least: 6, workers: 1)
  end

  def test_all_others
    passes("others", at_least: 150)
  end

  private

  # Runs these tests in a worker.
  def passes(tests, *options, at_least:, failing: {}, env: {}, **settings)
    server = serve(@app, "--request-timeout", "#{ENDS_WITHIN}s", *options, env: env.merge("TESTS" => tests),
                                                                           workers: 2, threads: 5, **settings)
    path = "/tests?seed=#{Minitest.seed}&port=#{server.port}"
    check(server.get(path, within: ENDS_WITHIN).body, at_least: at_least, failing: failing)
  end

  def check(text, at_least:, failing: {})
    results = JSON.parse(text)
    assert_operator results.length, :>=, at_least
    failed = results.reject { |_, problems| problems.empty? }
    report = failed.except(*failing.keys).map { |test, problems| "#{test}:\n#{problems.join("\n")}" }
    assert_equal failing.keys.sort, failed.keys.sort, "(A test that passes is not to be named here.)\n#{report.join}"
  end
end
