# frozen_string_literal: true

require_relative "../../support/e2e_test"

# Edge cases of what applications may do, against the whole server: none counts as a misbehaving worker, and none costs
# more than its own request.
class EdgesTest < E2ETest
  # Serves a config.ru that maps paths to code that receives the env.
  def serve_paths(paths, *options, **settings)
    cases = paths.map { |path, ruby| "when #{path.dump} then #{ruby}" }.join("\n")
    folder = folder_with("config.ru" => <<~RUBY)
      TEXT = { "content-type" => "text/plain" }.freeze
      run(lambda do |env|
        case env["PATH_INFO"]
        #{cases}
        else [200, TEXT, [Process.pid.to_s]]
        end
      end)
    RUBY
    @server = serve(folder, *options, **settings)
  end

  # The same worker is still alive.
  def assert_unharmed
    pid = @server.worker_pids
    yield
    assert_equal pid.first.to_s, @server.get("/").body
    assert_equal pid, @server.worker_pids
    refute_match(/broke|breach|protocol/i, @server.log)
  end

  def test_answers_that_are_none_cost_a_500_each
    serve_paths({ "/100" => "[100, {}, []]", "/103" => "[103, {}, []]", "/0" => "[0, {}, []]",
                  "/huge" => "[2**80, {}, []]", "/chunk" => "[200, TEXT, [1]]",
                  "/head" => '[200, { "x-large" => "x" * 300_000 }, ["text"]]' })
    assert_unharmed do
      %w[/100 /103 /0 /huge /head /chunk].each { |path| assert_equal 500, @server.get(path).status, path }
    end
  end

  def test_control_characters_in_fields_cost_a_500
    serve_paths({ "/one" => '[200, { "x" => "a\\x01b" }, ["text"]]',
                  "/each" => '[200, { "x" => "\\x7f" }, ["text"].each]',
                  "/tab" => '[200, { "x" => "a\\tb" }, ["text"]]' })
    assert_unharmed do
      assert_equal([500, 500, 200], %w[/one /each /tab].map { |path| @server.get(path).status })
    end
  end

  # Rack 2 asks of headers that they respond to `each`, and no more.
  def test_headers_that_are_pairs_keep_repeated_fields
    serve_paths({ "/" => '[200, [["set-cookie", "a=1"], ["set-cookie", "b=2"], ["x", "1"]], ["text"]]' })
    answer = @server.get("/")
    assert_equal [%w[a=1 b=2], ["1"], "text"], [answer.values("set-cookie"), answer.values("x"), answer.body]
  end

  def test_a_trailer_field_without_trailers_is_left_out
    body = '"4\\r\\ntext\\r\\n0\\r\\nx-sum: 1\\r\\n\\r\\n"'
    serve_paths({ "/" => %([200, { "trailer" => "x-sum", "transfer-encoding" => "chunked" }, [#{body}].each]) })
    answer = @server.get("/")
    assert_equal [nil, "text"], [answer["trailer"], answer.body]
  end

  # The client's method decides, not what a middleware makes of it.
  def test_the_method_of_the_client_decides_whether_there_is_a_body
    serve_paths({ "/" => '(env["REQUEST_METHOD"] = env["QUERY_STRING"]; [200, TEXT, %w[te xt].each])' })
    assert_equal "text", @server.get("/?HEAD").body
    @server.connect do |connection|
      assert_equal "", connection.request("HEAD", "/?GET").body
      assert_equal "text", connection.get("/?GET").body
    end
  end

  def test_bodies_with_a_path_that_is_not_the_whole_body
    body = ->(path) { "Class.new { def each = yield('text'); def to_path = #{path.dump} }.new" }
    part = '"content-range" => "bytes 0-3/12", "content-length" => "4"'
    serve_paths({ "/made-up" => "[200, TEXT, #{body['/proc/self/status']}]",
                  "/part" => "[206, { #{part} }, #{body['/etc/passwd']}]" })
    assert_equal(%w[text text], %w[/made-up /part].map { |path| @server.get(path).body })
  end

  def test_an_upgrade_that_the_client_has_not_offered_is_an_error
    serve_paths({ "/status" => '[101, { "upgrade" => "chat", "connection" => "upgrade" }, []]',
                  "/hijack" => '[101, { "rack.hijack" => ->(io) { io.close } }, []]',
                  "/by-name" => '[200, { "rack.protocol" => "chat" }, []]' })
    assert_unharmed do
      %w[/status /hijack /by-name].product(%w[1.0 1.1]).each do |path, version|
        answer = @server.connect { |connection| connection.request("GET", path, version: version) }
        assert_includes [500, 502], answer.status, "#{path} by HTTP/#{version}"
      end
    end
  end

  def test_large_heads_and_bodies_in_every_proportion
    answer = '[200, { "x-large" => "x" * env["QUERY_STRING"].to_i }, ["a" * 50_000]%s]'
    serve_paths({ "/each" => format(answer, ".each"), "/array" => format(answer, "") })
    assert_unharmed do
      [1, 16_000, 60_000, 65_000].product(%w[/each /array]).each do |bytes, path|
        answer = @server.get("#{path}?#{bytes}")
        assert_equal [bytes, 50_000], [answer["x-large"].bytesize, answer.body.bytesize]
      end
    end
  end

  def test_threads_that_write_to_one_stream_at_a_time
    serve_paths({ "/many" => <<~RUBY })
      [200, TEXT, lambda { |stream|
        Array.new(4) { |n| Thread.new { 200.times { stream.write(n.to_s * 10_000) } } }.each(&:join)
      }]
    RUBY
    body = @server.get("/many", within: 60).body
    assert_equal 8_000_000, body.bytesize
    assert_equal 800, body.scan(/0{10000}|1{10000}|2{10000}|3{10000}/).length
  end

  def test_threads_that_are_killed_all_the_time_while_others_ask
    kill = 'Thread.list.select { |thread| thread.name&.include?(" thread ") }.sample&.kill; [200, TEXT, []]'
    slow = '[200, TEXT, Enumerator.new { |body| 50.times { body << ("x" * 5000) } }]'
    serve_paths({ "/slow" => slow, "/kill" => kill }, threads: 4)
    assert_unharmed do
      results = concurrently(6) do |client|
        Array.new(60) { |n| ask(client.zero? ? "/kill" : %w[/ /slow][n % 2]) }
      end.flatten
      assert_empty results.uniq - [200, 502, :cut_off]
      assert_includes results, 200
    end
  end

  def test_a_process_that_the_app_forks_and_that_runs_on
    serve_paths({ "/fork" => <<~RUBY })
      if (pid = fork)
        [200, TEXT, [Process.wait2(pid).last.exitstatus.inspect]]
      else
        exit(7) if env["QUERY_STRING"] == "exit"
        [200, TEXT, ["from the child"]]
      end
    RUBY
    assert_unharmed do
      assert_equal "7", @server.get("/fork?exit").body
      assert_match(/\A\d\z/, @server.get("/fork").body)
    end
    assert_equal 1, @server.worker_pids.length
  end

  def test_early_hints_where_they_are_wanted
    hint = 'env["rack.early_hints"]&.call({ "link" => %w[</a.css> </b.js>], "x-number" => 1 }); [200, TEXT, ["late"]]'
    serve_paths({ "/hint" => hint }, "--early-hints", "on")
    @server.connect do |connection|
      2.times do
        early = connection.get("/hint")
        assert_equal [103, %w[</a.css> </b.js>], "1"], [early.status, early.values("link"), early["x-number"]]
        assert_equal "late", connection.read_response.body
      end
    end
    serve_paths({ "/hint" => hint })
    assert_equal "late", @server.get("/hint").body
  end

  # Together they are larger than the ring's area for a response; the second takes most of it.
  def test_a_large_response_behind_large_early_hints
    received = File.join(folder_with, "received")
    serve_paths({ "/hint" => <<~RUBY }, "--early-hints", "on")
      env["rack.early_hints"].call({ "link" => "a" * 20_000 })
      sleep 0.01 until File.exist?(#{received.dump})
      [200, TEXT, ["b" * 48_000]]
    RUBY
    @server.connect do |connection|
      assert_equal 103, connection.get("/hint").status
      File.write(received, "")
      assert_equal 48_000, connection.read_response.body.bytesize
    end
  end

  def test_an_upgrade_by_protocol
    serve_paths({ "/echo" => <<~RUBY })
      shout = lambda { |stream|
        stream.write(stream.readpartial(100).upcase)
        stream.close
      }
      [200, { "rack.protocol" => env["rack.protocol"].first }, shout]
    RUBY
    @server.connect do |connection|
      connection.write("GET /echo HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n")
      answer = connection.read_response
      assert_equal [101, "shout"], [answer.status, answer["upgrade"]]
      connection.write("hello")
      assert_equal "HELLO", connection.read_to_end
    end
  end

  def test_a_client_that_takes_nothing_does_not_hold_up_the_end
    serve_paths({ "/endless" => '[200, TEXT, ->(stream) { loop { stream.write("x" * 100_000) } }]' },
                "--response-spool", "1MiB", "--send-timeout", "1s", "--drain-timeout", "20s")
    @server.connect do |connection|
      connection.send_request("GET", "/endless")
      wait_for("the beginning") { connection.socket.wait_readable(0) }
      began = Deadline.now
      assert_predicate @server.stop, :success?
      assert_operator Deadline.now - began, :<, 10
    end
    refute_match(/ClientGone|EPIPE/, @server.log)
  end

  def test_developers_see_the_exception_and_others_do_not
    serve_paths({ "/raise" => 'raise "look here"' }, environment: "development")
    assert_match(/RuntimeError: look here.*config\.ru:\d+/m, @server.get("/raise", { "Host" => "localhost" }).body)
    refute_includes @server.get("/raise", { "Host" => "elsewhere.test" }).body, "look"
    serve_paths({ "/raise" => 'raise "look here"' })
    refute_includes @server.get("/raise").body, "look"
  end

  def test_exceptions_are_json_where_the_log_is
    serve_paths({ "/raise" => 'raise ArgumentError, "caf\xE9".b' }, "--log-format", "json")
    @server.get("/raise")
    wait_for("the log") { @server.log.include?("ArgumentError") }
    entry = JSON.parse(@server.log.lines.grep(/ArgumentError/).first)
    assert_equal ["error", 1, "GET /raise", "ArgumentError: caf\\xE9"],
                 entry.values_at("level", "worker", "request", "error")
    assert_match(/config\.ru:\d+/, entry["backtrace"])
  end

  private

  def ask(path)
    @server.get(path).status
  rescue EOFError, Errno::ECONNRESET
    :cut_off
  end
end
