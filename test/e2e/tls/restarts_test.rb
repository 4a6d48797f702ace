# frozen_string_literal: true

require_relative "../../support/upgrade_test_case"
require_relative "../../support/serves_tls"

# Restarts of a server with an address for HTTPS: clients do not notice.
class TlsRestartsTest < UpgradeTestCase
  include ServesTls

  def test_hot_restarts_under_load
    server = serve_tls(version(1), "--drain-timeout", "2s", workers: 2)
    load = KeepAliveLoad.during(https_end(server), allowed: [:closed]) do |clients|
      2.times do
        clients.more(3)
        serves_by(server, upgrade(server))
      end
      clients.more(3)
    end
    assert_empty load.failures
  end

  def test_rolling_restarts_under_load
    server = serve_tls(version(1), workers: 2)
    load = KeepAliveLoad.during(https_end(server), allowed: [:closed]) do |clients|
      (2..3).each do |number|
        version(number, server.app)
        clients.more(3)
        restart(server)
      end
      clients.more(3)
    end
    assert_empty load.failures
    assert_equal [3], load.versions_met.map(&:last).uniq
  end

  def test_new_connections_and_resumed_sessions
    server = serve_tls(version(1), "--drain-timeout", "1s")
    port = tls_port(server)
    sessions = [OpenSSL::SSL::TLS1_2_VERSION, nil].to_h { |max| [max, session_after_request(port, max: max)] }
    stopping = false
    clients = Array.new(4) do
      Thread.new { connect_tls(port) { |client| assert_equal 200, client.get("/").status } until stopping }
    end
    clients.each { |thread| thread.report_on_exception = false }
    2.times { serves_by(server, upgrade(server)) }
    stopping = true
    clients.each(&:join) # raises what one of them has met: a refusal, or a reset
    sessions.each { |max, session| assert resumes?(port, session, max: max), "TLS up to #{max || 'the newest'}" }
  end

  def test_a_bad_certificate_fails_a_hot_restart_and_nothing_else
    pair = certificate_for("localhost")
    server = serve_tls(version(1), pairs: [pair])
    File.write(pair.first, "")
    assert_match(/#{pair.first} is empty/, upgrade_fails(server))
    connect_tls(tls_port(server)) { |client| assert_equal 200, client.get("/").status }
  end
end
