# frozen_string_literal: true

require_relative "../../support/spawner_test_case"
require_relative "../../support/trace_collector"

# Collectors, and applications of several users: root alone names a collector, and a server without rights connects
# to none.
class TenantsOfTracesTest < SpawnerTestCase
  # Answers with the parent of its spans, and with the collector that its own gems would have.
  ECHO = <<~RUBY
    run ->(env) { [200, {}, [env.fetch("HTTP_TRACEPARENT", "none"), " ", ENV.fetch("OTEL_EXPORTER_OTLP_ENDPOINT", "none")]] }
  RUBY
  PARENT = { "traceparent" => "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" }.freeze

  def setup
    super
    skip "opentelemetry-proto is not installed (bin/test validators)" unless TraceCollector.available?
    @collectors = []
  end

  def teardown
    super
    @collectors&.each(&:close)
  end

  def test_a_server_without_rights_has_no_collector
    collector = start_collector
    configure_tenants(echo(ATTACKER), echo(VICTIM), top: "otlp_endpoint = '#{collector.endpoint}'")
    server = start_many(@place, env: root_env.merge(CHOSEN))
    wait_for("its end") { !server.running? }
    assert_match(/`otlp_endpoint`: traces are not possible where root starts Highball/, server.log)
    assert_equal 0, collector.connections
  end

  # They are for applications of root, perhaps.
  def test_variables_lead_to_a_warning_there
    collector = start_collector
    server = serve_echoes(env: { "OTEL_EXPORTER_OTLP_ENDPOINT" => collector.endpoint }.merge(CHOSEN))
    assert_match(/there are no traces\n    why: traces are not possible where root starts Highball/, server.log)
    assert_equal "#{PARENT['traceparent']} none", ask_attacker(server, "/", PARENT).body
    assert_equal "#{PARENT['traceparent']} none", ask_victim(server, "/", PARENT).body
    assert_nil server_status(server)["traces"]
    assert_reloads(server)
    assert_equal 0, collector.connections
  end

  # Neither its own file nor its variables are the server's.
  def test_no_application_names_the_collector
    collector = start_collector
    own = start_collector
    variables = "variables = { OTEL_EXPORTER_OTLP_ENDPOINT = '#{own.endpoint}' }\n"
    dotenv = "OTEL_EXPORTER_OTLP_ENDPOINT=#{own.endpoint}\nOTEL_TRACES_SAMPLER=always_off\n"
    server = serve_echoes({ "config/highball.toml" => variables, ".env" => dotenv },
                          top: "server_user = 'root'\notlp_endpoint = '#{collector.endpoint}'", env: UNCHOSEN)
    handed_on, theirs = ask_attacker(server, "/of-attacker", PARENT).body.split
    assert_match(/\A00-4bf92f3577b34da6a3ce929d0e0e4736-(?!00f067aa0ba902b7)\h{16}-01\z/, handed_on)
    assert_equal own.endpoint, theirs, "its own gems have its collector"
    assert_match(/ none\z/, ask_victim(server, "/of-victim").body)
    names = %w[attacker victim].map { |name| collector.trace_of("/of-#{name}")["request"]["highball.app"] }
    assert_equal %w[attacker victim], names
    assert_equal 0, own.connections
  end

  def test_an_application_may_not_have_the_option
    own = start_collector
    line = "otlp_endpoint = 'http://localhost:#{own.port}'\n"
    configure_tenants(echo(ATTACKER, "config/highball.toml" => line), echo(VICTIM))
    server = serve_as_root(@place)
    assert_match(/highball\.toml, line 1: `otlp_endpoint` is an option of the server/, server.log)
    ask_victim(server, "/", PARENT)
    assert_equal 0, own.connections
  end

  private

  # As usual where root starts a server of several users.
  CHOSEN = { "HIGHBALL_SERVER_USER" => "nobody" }.freeze
  private_constant :CHOSEN

  def start_collector(...) = TraceCollector.new(...).tap { |collector| @collectors << collector }

  def echo(user, files = {})
    user == ATTACKER ? attacker_app({ "config.ru" => ECHO }.merge(files)) : victim_app("config.ru" => ECHO)
  end

  def serve_echoes(files = {}, **settings) = serve_tenants(echo(ATTACKER, files), echo(VICTIM), **settings)

  # A reload finds nothing new.
  def assert_reloads(server)
    configuration = File.read(File.join(@place, "highball.toml"))
    File.write(File.join(@place, "highball.toml"), "#{configuration}\nmax_body = '1M'\n")
    server.signal("HUP")
    wait_for("the reload") { server.log.include?("the configuration has changed") }
    refute_includes server.log, "options of the server have changed"
  end
end
