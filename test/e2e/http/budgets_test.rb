# frozen_string_literal: true

require_relative "../../support/e2e_test"

# Memory and spool files have budgets, of which no client gets all. A proxy reports the addresses of the clients.
class BudgetsTest < E2ETest
  HERE = "PROXY UNKNOWN\r\n"
  GREEDY = "192.0.2.1"
  OTHER = "192.0.2.2"
  APP = <<~'RUBY'
    run lambda { |env|
      case env["PATH_INFO"]
      when "/large" then [200, {}, Enumerator.new { |body| 1600.times { body << ("x" * 65_536) } }]
      when "/hold"
        sleep 0.01 until File.exist?(File.join(__dir__, "release"))
        [200, {}, ["held"]]
      else [200, {}, [env["rack.input"].read.bytesize.to_s]]
      end
    }
  RUBY

  def test_a_slow_client_leaves_room_for_spool_files_to_others
    server = serve_behind_a_proxy("--max-spool", "64m", threads: 5)
    # Each of them holds a thread: the rest of its answer has no room.
    slow = Array.new(3) { from(GREEDY, server).tap { |client| client.send_request("GET", "/large") } }
    wait_for("a full share", within: 30) { server.status["spool_bytes"] > 30 * MIB }
    assert_refused(server, upload(server, GREEDY, 2 * MIB))
    assert_equal [200, (2 * MIB).to_s], status_and_body(upload(server, OTHER, 2 * MIB))
    assert_operator server.status["spool_bytes"], :<=, 32 * MIB
    slow.shift.close until slow.empty?
    wait_for("room again") { server.status["spool_bytes"].zero? }
    assert_equal 200, upload(server, GREEDY, 2 * MIB).status
  ensure
    slow&.each(&:close)
  end

  def test_an_upload_larger_than_a_clients_share_is_too_large
    server = serve_behind_a_proxy("--max-spool", "64m")
    assert_equal 413, upload(server, GREEDY, 33 * MIB).status
    assert_equal [200, (33 * MIB).to_s], status_and_body(server.request("POST", "/", {}, "x" * (33 * MIB)))
  end

  def test_uploads_for_which_there_is_no_memory_go_to_the_disk
    body = "x" * 600_000
    server = serve(folder_with("config.ru" => APP), "--max-buffers", "1m", threads: 1)
    held = server.connect.tap { |client| client.send_request("GET", "/hold") }
    wait_for("begin of the first") { server.status["workers"].sum { |worker| worker["in_flight"] } == 1 }
    queued = Array.new(3) { |number| queue_upload(server, body, number + 1) }
    assert_equal [600_000, 1_200_000], server.status.values_at("buffer_bytes", "spool_bytes")
    wait_for("the line in the log") { server.log.include?("the buffers of requests and responses are full") }
    File.write(File.join(server.app, "release"), "")
    assert_equal(["held", *Array.new(3, "600000")], [held, *queued].map { |client| client.read_response.body })
    wait_for("nothing is held") { server.status.values_at("buffer_bytes", "spool_bytes") == [0, 0] }
  ensure
    [held, *queued].compact.each(&:close)
  end

  private

  def serve_behind_a_proxy(*options, **settings)
    serve(folder_with("config.ru" => APP), "--proxy-protocol", "v1", *options, preface: HERE, **settings)
  end

  def from(address, server)
    HttpConnection.tcp(server.port).write("PROXY TCP4 #{address} 198.51.100.1 4000 80\r\n")
  end

  def upload(server, address, bytes)
    from(address, server).use do |client|
      client.send_request("POST", "/", { "Content-Length" => bytes })
      client.write("x" * [bytes, 2 * MIB].min)
      client.read_response
    end
  end

  # An upload that waits for a thread, as the last of this number.
  def queue_upload(server, body, number)
    server.connect.tap do |client|
      client.send_request("POST", "/", {}, body)
      wait_for("a place in the queue") { server.status["queue"] == number }
    end
  end

  def assert_refused(server, answer)
    assert_equal [503, "5"], [answer.status, answer["retry-after"]]
    wait_for("the line in the log") { server.log.match?(/spool files are full.* limit_for_a_client=#{32 * MIB}/) }
  end

  def status_and_body(answer) = [answer.status, answer.body]
end
