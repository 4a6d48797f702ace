# frozen_string_literal: true

require_relative "../../support/tls_test_case"

# Clients that speak HTTP without TLS at an address for HTTPS.
class PlainHttpAtTlsTest < TlsTestCase
  def test_plain_http_is_sent_to_https
    server = serve_tls(folder_with("config.ru" => ENV_APP))
    port = tls_port(server)
    plain = ->(method, *rest) { HttpConnection.tcp(port).use { |client| client.request(method, *rest) } }
    answer = plain.call("GET", "/a?b=c", { "Host" => "localhost:#{port}" })
    assert_equal [307, "https://localhost:#{port}/a?b=c", "close"],
                 [answer.status, answer["location"], answer["connection"]]
    assert_nil answer["strict-transport-security"]
    assert_equal 307, plain.call("HEAD", "/").status
  end

  # What it has sent was readable on the way: a redirect would hide that.
  def test_plain_http_with_a_body_gets_an_explanation
    server = serve_tls(folder_with("config.ru" => ENV_APP))
    [["POST", "/", {}, "secret"], ["DELETE", "/"]].each do |request|
      answer = HttpConnection.tcp(tls_port(server)).use { |client| client.request(*request) }
      assert_equal [400, "close"], [answer.status, answer["connection"]]
      assert_match(%r{write https://}, answer.body)
    end
    HttpConnection.tcp(tls_port(server)).use do |client|
      assert_equal 505, client.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").read_response.status
    end
  end

  def test_nothing_is_served_behind_a_proxy_that_reports_https
    server = serve_tls(folder_with("config.ru" => ENV_APP), "--trusted-proxies", "loopback")
    HttpConnection.tcp(tls_port(server)).use do |client|
      assert_equal 307, client.get("/", { "X-Forwarded-Proto" => "https" }).status
    end
  end

  def test_half_a_request_times_out
    server = serve_tls(folder_with("config.ru" => ENV_APP), "--head-timeout", "1s", "--tls-handshake-timeout", "1s")
    ["G", "GET / HTTP/1.1\r\nHost: "].each do |half|
      assert_match(%r{\AHTTP/1.1 408 }, read_to_end(tls_port(server), half))
    end
    assert_equal "", read_to_end(tls_port(server), "")
  end

  private

  def read_to_end(port, bytes) = HttpConnection.tcp(port).use { |client| client.write(bytes).read_to_end }
end
