# frozen_string_literal: true

require "open3"
require_relative "../../support/tls_test_case"

# Others' programs that speak HTTP/2: a load generator, and a check of how closely a server keeps to the specification.
class Http2PeersTest < TlsTestCase
  def setup
    super
    long
    @server = serve_tls("probe", "--http2-cleartext", "on")
  end

  def test_h2load
    needs("h2load", "nghttp2-client")
    ["https://localhost:#{tls_port(@server)}/", "http://127.0.0.1:#{@server.port}/"].each do |address|
      printed = run_program("h2load", "-n", "20000", "-c", "100", "-m", "10", address)
      assert_match(/20000 succeeded, 0 failed, 0 errored, 0 timeout$/, printed)
      assert_match(/status codes: 20000 2xx, 0 3xx, 0 4xx, 0 5xx/, printed)
    end
  end

  # Without TLS the address is one for HTTP/1.1, too. What begins with neither gets an answer of HTTP/1.1: "an invalid
  # preface indicates that the peer is not using HTTP/2" (RFC 9113 section 3.4). h2spec expects silence.
  def test_h2spec
    needs("h2spec", "go install github.com/summerwind/h2spec/cmd/h2spec@latest")
    { ["-p", tls_port(@server).to_s, "-t", "-k"] => [],
      ["-p", @server.port.to_s] => ["2: Sends invalid connection preface"] }.each do |address, different|
      printed = run_program("h2spec", "-h", "127.0.0.1", "-o", "5", *address)
      total, passed = printed.match(/^(\d+) tests, (\d+) passed, 0 skipped/).captures.map(&:to_i)
      assert_equal different, printed[/^Failures.*/m].to_s.scan(/× (.*)/).flatten
      assert_equal [true, different.length], [total > 140, total - passed]
    end
  end

  private

  def run_program(*command)
    printed, status = Open3.capture2e("timeout", "300", *command)
    assert_predicate status, :exited?, printed
    printed
  end
end
