# frozen_string_literal: true

require_relative "../../support/e2e_test"

# Sessions in the memory of a process: their requests go to the worker that has them (option `affinity`).
class AffinityTest < E2ETest
  # Each process knows the sessions that it has begun. `/wait` keeps a thread until a file is there.
  APP = <<~'RUBY'
    require "securerandom"
    SESSIONS = {}
    LOCK = Mutex.new
    run lambda { |env|
      id = env["HTTP_MCP_SESSION_ID"]
      case env["PATH_INFO"]
      when "/begin"
        id = SecureRandom.uuid
        LOCK.synchronize { SESSIONS[id] = 0 }
      when "/wait" then sleep 0.01 until File.exist?(env["QUERY_STRING"])
      end
      count = LOCK.synchronize { SESSIONS[id] &&= SESSIONS[id] + 1 }
      [200, { "content-type" => "text/plain", "mcp-session-id" => id }.compact, ["#{Process.pid} #{count || 'unknown'}"]]
    }
  RUBY
  FIELD = "Mcp-Session-Id"
  SESSIONS = 1000
  CLIENTS = 8
  NAME = "highball-worker"

  def test_a_thousand_sessions_stay_with_four_workers
    server = serve_all("--affinity", "header:#{FIELD}", workers: 4)
    sessions = begin_sessions(server)
    assert_equal 4, sessions.values.uniq.length
    sessions.values.tally.each_value { |count| assert_in_delta SESSIONS / 4, count, SESSIONS / 8 }
    3.times { assert_empty misrouted(server, sessions) }
    assert_equal({ "kept" => 3 * SESSIONS, "moved" => 0, "begun" => SESSIONS + 1 }, server.status["sessions"])
  end

  def test_sessions_of_a_worker_that_dies_move_and_stay
    server = serve_all("--affinity", "header:#{FIELD}", workers: 4)
    sessions = begin_sessions(server)
    dead = end_worker(server, server.worker_pids.first)
    lost, others = sessions.partition { |_, pid| pid == dead }.map(&:to_h)
    refute_empty lost
    assert_empty misrouted(server, others)
    moved = where(server, lost.keys)
    refute_includes moved.values, dead
    assert_equal moved, where(server, lost.keys), "a session that has moved does not stay"
    assert_empty misrouted(server, others)
  end

  def test_a_cookie
    server = serve_all("--affinity", "cookie", workers: 4)
    first = server.get("/")
    cookie = first["set-cookie"]
    assert_match(%r{\A#{NAME}=\d+\.\h{16}\.\h{16}; Path=/; HttpOnly; SameSite=Lax\z}, cookie)
    browser = { "Cookie" => "a=b; #{cookie[/\A[^;]+/]}" }
    20.times do
      answer = server.get("/", browser)
      assert_equal [pid_of(first), nil], [pid_of(answer), answer["set-cookie"]]
    end
    assert_equal 4, Array.new(20) { pid_of(server.get("/")) }.uniq.length
  end

  def test_a_cookie_whose_worker_dies
    server = serve_all("--affinity", "cookie", workers: 4)
    first = server.get("/")
    browser = { "Cookie" => first["set-cookie"][/\A[^;]+/] }
    end_worker(server, pid_of(first))
    moved = server.get("/", browser)
    assert_match(/\A#{NAME}=/, moved["set-cookie"])
    5.times { assert_equal pid_of(moved), pid_of(server.get("/", browser)) } # also with the cookie of before
    browser = { "Cookie" => moved["set-cookie"][/\A[^;]+/] }
    5.times do
      answer = server.get("/", browser)
      assert_equal [pid_of(moved), nil], [pid_of(answer), answer["set-cookie"]]
    end
  end

  # A client cannot name a worker: the cookie of another one counts as none.
  def test_a_forged_cookie
    server = serve_all("--affinity", "cookie", workers: 2)
    cookie = server.get("/")["set-cookie"][/\A[^;]+/]
    forged = cookie.sub(/=(\d+)/) { "=#{$1.to_i.even? ? $1.to_i - 1 : $1.to_i + 1}" } # rubocop:disable Style/PerlBackrefs
    [forged, "#{NAME}=1.#{'0' * 16}.#{'0' * 16}", "#{NAME}=", "#{NAME}=#{'9' * 300}", "#{NAME}=1.2.3"].each do |value|
      answer = server.get("/", { "Cookie" => value })
      assert_equal 200, answer.status
      assert_match(/\A#{NAME}=\d/, answer["set-cookie"], value)
    end
  end

  # A worker that is busy with a session's requests holds up no other request, and gets its share of the queue.
  def test_a_flood_of_one_session
    server = serve_all("--affinity", "header:#{FIELD}", "--max-queue", "40", workers: 4, threads: 1)
    sessions = begin_sessions(server, 40)
    flooded, pid = sessions.first
    go = File.join(folder_with, "go")
    waiting = Array.new(30) { Thread.new { server.get("/wait?#{go}", { FIELD => flooded }, within: 60).status } }
    wait_for("the queue") { server.status["queue"] == 10 }
    others = sessions.reject { |_, other| other == pid }
    assert_empty misrouted(server, others)
    assert_equal 200, server.get("/").status
    assert_equal 503, server.get("/", { FIELD => flooded }).status
    File.write(go, "")
    assert_equal({ 200 => 11, 503 => 19 }, waiting.map(&:value).tally)
    assert_empty misrouted(server, sessions)
  ensure
    File.write(go, "") if go
  end

  # Sessions of old workers move; then they stay.
  def test_a_rolling_restart
    server = serve_all("--affinity", "header:#{FIELD}", workers: 3)
    sessions = begin_sessions(server, 60)
    before = server.worker_pids
    command_output(server, "restart")
    wait_for("the new workers") { (server.worker_pids & before).empty? && server.worker_pids.length == 3 }
    moved = where(server, sessions.keys)
    assert_empty moved.values & before
    assert_equal moved, where(server, sessions.keys)
  end

  # A session that no worker has begun stays together, too: its first request decides.
  def test_names_of_clients
    server = serve_all("--affinity", "header:X-Room", workers: 4)
    rooms = Array.new(40) { |number| "room #{number}" }
    field = ->(room) { { "X-Room" => room } }
    first = rooms.to_h { |room| [room, pid_of(server.get("/", field[room]))] }
    assert_equal 4, first.values.uniq.length
    3.times { assert_equal(first, rooms.to_h { |room| [room, pid_of(server.get("/", field[room]))] }) }
  end

  def test_without_the_option_nothing_is_sent
    server = serve(app, workers: 1)
    assert_nil server.get("/")["set-cookie"]
    refute server.status.key?("sessions")
  end

  private

  def app = folder_with("config.ru" => APP)

  # Waits until all workers serve.
  def serve_all(*options, **settings)
    server = serve(app, *options, **settings)
    wait_for("all workers") { server.worker_pids.length == settings.fetch(:workers) && server.settled? }
    server
  end

  def pid_of(answer) = answer.body.to_i

  # Kills a worker, and waits for another one.
  def end_worker(server, pid)
    HighballServer.kill(pid)
    wait_for("another worker") { server.worker_pids.length == 4 && !server.worker_pids.include?(pid) }
    pid
  end

  # The process of each session.
  def begin_sessions(server, count = SESSIONS)
    in_parallel(server, Array.new(count)) do |connection|
      answer = connection.get("/begin")
      [answer["mcp-session-id"], pid_of(answer)]
    end.to_h
  end

  # Where requests of these sessions are answered now.
  def where(server, ids)
    in_parallel(server, ids) { |connection, id| [id, pid_of(connection.get("/", { FIELD => id }))] }.to_h
  end

  # The sessions of which another process answers, or a process that does not know them.
  def misrouted(server, sessions)
    in_parallel(server, sessions.keys) do |connection, id|
      answer = connection.get("/", { FIELD => id })
      [id, answer.body] if pid_of(answer) != sessions[id] || answer.body.end_with?("unknown")
    end.compact
  end

  # Several clients at a time, each with one connection.
  def in_parallel(server, items, &block)
    items.each_slice((items.length / CLIENTS.to_f).ceil).map do |part|
      Thread.new { server.connect { |connection| part.map { |item| block.call(connection, item) } } }
    end.flat_map(&:value)
  end
end
