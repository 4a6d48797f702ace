# frozen_string_literal: true

require_relative "../../support/tenants_test_case"

# Spool files belong to the server and do not count for a tenant's disk quota, so they have a budget.
class TenantSpoolTest < TenantsTestCase
  MIB = 1 << 20
  LARGE = <<~'RUBY'
    KEPT = []
    run lambda { |env|
      case env["PATH_INFO"]
      when "/large" then [200, {}, Enumerator.new { |body| 1600.times { body << ("x" * 65_536) } }]
      when "/keep"
        KEPT << env["rack.input"].dup
        [200, {}, [KEPT.last.stat.size.to_s]]
      when "/kept" then [200, {}, [KEPT.last.stat.size.to_s]]
      else [200, {}, [env["rack.input"].read.bytesize.to_s]]
      end
    }
  RUBY

  def setup
    super
    apps = [attacker_app("config.ru" => LARGE), victim_app("config.ru" => LARGE)]
    @server = serve_tenants(*apps, top: "max_spool = '64m'")
    @slow = []
  end

  def teardown
    @slow&.each(&:close)
    super
  end

  def test_slow_clients_of_one_tenant_leave_room_to_the_others
    slow_clients(3)
    wait_for("a full share") { spooled(ATTACKER) > 30 * MIB }
    assert_operator spooled(ATTACKER), :<=, 32 * MIB
    assert_operator @server.full_status["spool_bytes"], :<=, 64 * MIB
    assert_equal [200, MIB.to_s], status_and_body(upload(VICTIM, MIB))
    refused = upload(ATTACKER, 2 * MIB)
    assert_equal [503, "5"], [refused.status, refused["retry-after"]]
    wait_for("one line in the log") { @server.log.scan("spool files are full").length == 1 }
    @slow.shift.close until @slow.empty?
    wait_for("room again") { @server.full_status["spool_bytes"].zero? }
    assert_equal [200, (2 * MIB).to_s], status_and_body(upload(ATTACKER, 2 * MIB))
  end

  # Without room for the rest of the answers, their worker waits, and no byte is lost.
  def test_answers_without_room_arrive_whole
    slow_clients(3)
    wait_for("a full share") { spooled(ATTACKER) > 30 * MIB }
    sizes = @slow.map do |client|
      Thread.new do
        bytes = 0
        client.read_response(within: 60) { |piece| bytes += piece.bytesize }
        bytes
      end
    end
    assert_equal [1600 * 65_536] * 3, sizes.map(&:value)
  end

  def test_what_never_fits_is_too_large
    assert_equal 413, upload(VICTIM, 33 * MIB).status
    chunk = "#{MIB.to_s(16)}\r\n#{'x' * MIB}\r\n"
    answer = @server.connect do |client|
      client.write("POST / HTTP/1.1\r\nHost: #{HOSTS[VICTIM]}\r\nTransfer-Encoding: chunked\r\n\r\n")
      begin
        33.times { client.write(chunk) }
      rescue Errno::EPIPE, Errno::ECONNRESET
        nil # the answer has come
      end
      client.read_response
    end
    assert_equal 413, answer.status
  end

  # A tenant may keep the file of a body open for as long as it likes.
  def test_a_file_that_an_application_keeps_is_emptied
    assert_equal [200, MIB.to_s], status_and_body(upload(ATTACKER, MIB, path: "/keep"))
    wait_for("an empty file") { ask_attacker(@server, "/kept").body == "0" }
    assert_equal 0, @server.full_status["spool_bytes"]
  end

  private

  # Clients that ask for 100 MiB and read nothing.
  def slow_clients(count)
    @slow = Array.new(count) do
      @server.connect.tap { |client| client.send_request("GET", "/large", { "Host" => HOSTS[ATTACKER] }) }
    end
  end

  def spooled(tenant)
    apps = @server.full_status.fetch("apps")
    apps.find { |app| app["hosts"].include?(HOSTS[tenant]) }.fetch("spool_bytes")
  end

  def upload(tenant, bytes, path: "/")
    @server.connect do |client|
      client.send_request("POST", path, { "Host" => HOSTS[tenant], "Content-Length" => bytes })
      client.write("x" * [bytes, 2 * MIB].min)
      client.read_response(within: 30)
    rescue Errno::EPIPE, Errno::ECONNRESET # the answer has come before the end of the body
      client.read_response(within: 30)
    end
  end

  def status_and_body(answer) = [answer.status, answer.body]
end
