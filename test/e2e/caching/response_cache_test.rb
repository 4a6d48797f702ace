# frozen_string_literal: true

require "zlib"
require_relative "../../support/cache_test_case"

# Responses that the application has declared to be for all clients, stored and sent again.
class ResponseCacheTest < CacheTestCase
  def test_an_answer_is_stored_and_sent_again
    first = get("/public")
    second = get("/public")
    assert_equal [STORED, HIT], [says(first), says(second)]
    assert_equal of(first), of(second)
    assert_equal 1, asked("/public")
    %w[content-type cache-control].each { |name| assert_equal first[name], second[name] }
    assert_match(/\A\d+\z/, second["age"])
    assert_equal first.body.bytesize.to_s, second["content-length"]
    assert second["date"]
  end

  def test_without_the_option_nothing_is_stored
    server = serve(folder)
    bodies = Array.new(2) { server.get("/public") }
    assert_equal ["1: 1", "1: 2"], bodies.map(&:body)
    assert_nil bodies.last["cache-status"]
  end

  def test_which_answers_are_stored
    { "/public" => true, "/shared" => true, "/missing" => true, "/moved" => true, "/none" => true, "/plain" => false,
      "/private" => false, "/cookie" => false, "/missing-plain" => false, "/broken" => false, "/bad" => false,
      "/everything" => false, "/file" => false }.each do |path, stored|
      first, second = Array.new(2) { get(path) }
      assert_equal stored ? HIT : MISS, says(second).delete_suffix("; stored"), path
      assert_equal first.status, second.status, path
      assert_equal of(first), of(second), path if stored
    end
  end

  def test_head_is_answered_from_a_stored_get_and_stores_nothing
    head = server.request("HEAD", "/public")
    assert_equal [MISS, ""], [says(head), head.body]
    got = get("/public")
    assert_equal [STORED, "1: 2"], [says(got), got.body]
    head = server.request("HEAD", "/public")
    assert_equal [HIT, "", got.body.bytesize.to_s], [says(head), head.body, head["content-length"]]
  end

  def test_vary_separates_answers
    german, english = %w[de en].map { |language| get("/language", { "Accept-Language" => language }) }
    assert_equal ["de 1", "en 2"], [german.body, english.body]
    assert_equal "highball; fwd=vary-miss; stored", says(english)
    %w[de en].zip(["de 1", "en 2"]) do |language, body|
      assert_equal body, get("/language", { "Accept-Language" => language }).body
    end
    assert_equal [" 3", " 3"], Array.new(2) { get("/language").body }
    assert_equal "de 1", get("/language", { "Accept-Language" => " DE " }).body
  end

  def test_conditions_of_clients_are_answered
    page = get("/page")
    still = get("/page", { "If-None-Match" => page["etag"] })
    assert_equal [304, HIT, "", page["etag"]], [still.status, says(still), still.body, still["etag"]]
    assert_nil still["content-type"]
    assert_equal 200, get("/page", { "If-None-Match" => '"other"' }).status
    assert_equal 1, asked("/page")
  end

  def test_a_stale_answer_is_revalidated
    assert_equal "tagged 1", get("/tagged").body
    wait_until_stale("/tagged")
    again = get("/tagged")
    assert_equal [200, "tagged 1", "2"], [again.status, again.body, again["x-count"]]
    assert_equal "highball; hit; ttl=N; fwd=stale; fwd-status=304", says(again)
    assert_equal [200, "tagged 1"], of(get("/tagged")).first
    wait_until_stale("/tagged")
    assert_equal [304, ""], of(get("/tagged", { "If-None-Match" => '"v1"' })).first
    assert_equal [200, "tagged 1"], of(get("/tagged", { "If-None-Match" => '"old"' })).first
  end

  def test_a_stale_answer_is_revalidated_by_its_date
    assert_equal "dated 1", get("/dated").body
    wait_until_stale("/dated")
    assert_equal [200, "dated 1"], of(get("/dated")).first
    assert_equal 2, asked("/dated")
  end

  def test_a_stale_answer_without_a_validator_is_replaced
    assert_equal "1", get("/brief").body
    wait_until_stale("/brief")
    again = get("/brief")
    assert_equal ["2", "highball; fwd=stale; stored"], [again.body, says(again)]
  end

  def test_a_stale_answer_is_sent_while_a_newer_one_is_fetched
    assert_equal "1", get("/meanwhile").body
    sleep 0.05 until get("/meanwhile")["cache-status"].include?("ttl=-") # the first that is stale
    wait_for("a newer answer") { get("/meanwhile").body == "2" }
  end

  def test_a_stale_answer_takes_the_place_of_an_error
    %w[/failing /raising].each do |path|
      assert_equal [200, "fine"], of(get(path)).first
      wait_until_stale(path)
      instead = get(path)
      assert_equal [200, "fine"], of(instead).first, path
      assert_match(/fwd=stale; fwd-status=50[03]\z/, says(instead))
    end
    get("/strict")
    wait_until_stale("/strict")
    assert_equal 503, get("/strict").status
  end

  def test_what_requests_ask_of_the_cache
    get("/public")
    { "no-cache" => "1: 2", "max-age=0" => "1: 3", "no-store" => "1: 4" }.each do |control, body|
      assert_equal body, get("/public", { "Cache-Control" => control }).body, control
    end
    assert_equal "1: 3", get("/public").body, "no-store stores nothing"
    assert_equal "1: 5", get("/public", { "Pragma" => "no-cache" }).body
    assert_equal "1: 5", get("/public", { "Cache-Control" => "max-age=60" }).body
    assert_equal "1: 6", get("/public", { "Cache-Control" => "min-fresh=1000" }).body
    assert_equal "1: 6", get("/public", { "Cache-Control" => "only-if-cached" }).body
    assert_equal 504, get("/unknown", { "Cache-Control" => "only-if-cached" }).status
  end

  def test_successful_writes_invalidate
    { ["POST", "/public"] => true, ["POST", "/update"] => true, ["DELETE", "/public"] => true,
      ["POST", "/update-elsewhere"] => false, ["POST", "/refused"] => false, ["GET", "/update"] => false,
      ["POST", "/other"] => false }.each do |(method, path), invalidates|
      get("/public")
      server.request(method, path, {}, method == "GET" ? nil : "x")
      assert_equal invalidates ? STORED : HIT, says(get("/public")), "#{method} #{path}"
    end
  end

  def test_stored_answers_are_compressed
    answers = Array.new(3) { get("/page", { "Accept-Encoding" => "gzip" }) }
    answers.each do |answer|
      fields = %w[content-encoding vary etag].map { |name| answer[name] }
      assert_equal ["gzip", "accept-encoding", 'W/"page"'], fields
    end
    assert_equal 1, asked("/page")
    assert_kept_in_gzip
    assert_nil get("/page")["content-encoding"]
    assert_equal 304, get("/page", { "Accept-Encoding" => "gzip", "If-None-Match" => 'W/"page"' }).status
  end

  # After the first hit, the body is compressed once, and kept so.
  def assert_kept_in_gzip
    plain = get("/page").body
    smallest = get("/page", { "Accept-Encoding" => "gzip" }).body.bytesize
    wait_for("a body that was compressed with care") do
      answer = get("/page", { "Accept-Encoding" => "gzip" })
      assert_equal [plain, answer.body.bytesize.to_s], [Zlib.gunzip(answer.body), answer["content-length"]]
      assert_equal ["gzip", "accept-encoding", 'W/"page"', HIT],
                   [*%w[content-encoding vary etag].map { |name| answer[name] }, says(answer)]
      answer.body.bytesize < smallest || server.status.dig("cache", "bytes") > plain.bytesize + smallest
    end
    head = server.request("HEAD", "/page", { "Accept-Encoding" => "gzip" })
    assert_equal ["gzip", nil, HIT], [head["content-encoding"], head["content-length"], says(head)]
  end

  def test_what_the_application_has_encoded_is_sent_to_those_who_accept_it
    %w[gzip br gzip].each do |coding|
      assert_equal coding, get("/encoded", { "Accept-Encoding" => coding })["content-encoding"]
    end
    assert_equal 2, asked("/encoded")
  end

  def test_large_answers_are_sent_whole
    whole = "x" * 3_000_000
    server(cache: "64m")
    3.times { assert_equal whole, get("/large").body }
    assert_equal 1, asked("/large")
  end

  def test_a_restart_forgets_all
    assert_equal "1: 1", get("/public").body
    File.write(File.join(server.app, "version"), "2")
    assert_equal "1: 1", get("/public").body
    highball("restart", *server.which, within: 60)
    assert_equal "2: 1", get("/public").body
  end

  def test_the_option_changes_with_hup
    file = ->(size) { "cache = \"#{size}\"\n" }
    folder = folder({ "config/highball.toml" => file["8m"] })
    @server = serve(folder)
    assert_equal STORED, says(get("/public"))
    File.write(File.join(folder, "config/highball.toml"), file["0"])
    server.signal("HUP")
    wait_for("no cache") { says(get("/public")).nil? }
    File.write(File.join(folder, "config/highball.toml"), file["4m"])
    server.signal("HUP")
    wait_for("another cache") { says(get("/public")) == HIT }
    assert_equal 4 * MIB, server.status.dig("cache", "max_bytes")
  end

  def test_the_status_and_the_access_log_count_hits
    log = File.join(folder_with, "access.log")
    server("--access-log", log)
    3.times { get("/public") }
    cache = server.status.fetch("cache")
    assert_equal [2, 8 * MIB], cache.values_at("hits", "max_bytes")
    assert_operator cache["misses"], :>=, 1
    assert_operator cache["bytes"], :>, 0
    assert_includes HighballServer.run("status", *server.which).first, "2 hits"
    wait_for("lines in the log") { File.read(log).scan("GET /public").length == 3 }
    marked = File.readlines(log).grep(%r{GET /public}).map { |line| line.end_with?(" cache=hit\n") }
    assert_equal [false, true, true], marked
  end

  def test_ids_are_not_stored
    server("--request-id", "on")
    get("/id", { "X-Request-Id" => "first-visitors" })
    hit = get("/id", { "X-Request-Id" => "seconds" })
    assert_equal [HIT, "seconds"], [says(hit), hit["x-request-id"]]
  end

  def test_a_body_of_another_length_than_announced_is_not_stored
    cut = { "/longer" => "hello", "/longer-at-once" => "hello", "/longer-than-nothing" => "",
            "/longer-than-chunks" => "hello" }
    cut.each do |path, body|
      answers = Array.new(2) { get(path) }
      assert_equal [[200, body]] * 2, of(*answers), path
      assert_equal [2, 504], [asked(path), get(path, { "Cache-Control" => "only-if-cached" }).status], path
    end
    2.times { assert_raises(EOFError, Errno::ECONNRESET) { get("/shorter") } }
    assert_equal 2, asked("/shorter")
    assert_includes server.log, "its body is longer"
    assert_includes server.log, "its body is shorter"
  end

  # A proxy that sends files gets another answer than its visitors would: neither is for the other.
  def test_the_name_of_a_file_that_a_proxy_sends_is_not_stored
    @server = serve(folder, "--cache", "8m", "--trusted-proxies", "127.0.0.1", "-b", "unix:proxy.sock")
    files = Array.new(2) { get("/named-file")["x-accel-redirect"] }
    assert_equal ["/files/1", "/files/2"], files
    assert_equal MISS, says(get("/named-file"))
  end
end
