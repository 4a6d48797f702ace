# frozen_string_literal: true

require_relative "../../support/cache_test_case"
require_relative "../../support/http2_client"
require_relative "../../support/fastcgi_client"
require_relative "../../support/basic_auth_users"

# Clients that try to have their answers sent to others, to read the answers of others, or to fill the memory.
class HostileCacheTest < CacheTestCase
  include BasicAuthUsers

  # What the application repeats of these fields reaches no client that has not sent them itself.
  FIELDS = %w[X-Forwarded-Host X-Forwarded-Proto X-Forwarded-Scheme X-Forwarded-Port X-Forwarded-Prefix
              X-Forwarded-Server X-Forwarded-Ssl X-Host X-Original-URL X-Original-Host X-Rewrite-URL X-Method
              X-HTTP-Method-Override X-HTTP-Method X-Method-Override X-Forwarded-Path X-Http-Host-Override
              X-Wap-Profile X-Requested-With X-Nobody-Knows-This Forwarded Origin Turbo-Frame X-Forwarded-Host.].freeze

  def test_fields_that_are_not_known_poison_nothing
    FIELDS.each { |name| get("/echo", { name => "evil.example" }) }
    clean = get("/echo")
    assert_equal STORED.sub("uri-miss", "vary-miss"), says(clean)
    refute_includes clean.body, "evil"
    FIELDS.each { |name| get("/echo", { name => "evil.example" }) }
    assert_equal of(clean), of(get("/echo"))
  end

  # A client that sends such a field gets what it makes of the page, and no other client does.
  def test_an_answer_to_such_a_field_is_for_those_who_send_it
    evil = get("/echo", { "X-Forwarded-Host" => "evil.example" })
    assert_includes evil.body, "evil.example"
    assert_equal of(evil), of(get("/echo", { "x-forwarded-host" => "evil.example" }))
    refute_equal of(evil), of(get("/echo", { "X-Forwarded-Host" => "EVIL.example" }))
  end

  def test_the_target_counts_as_it_was_sent
    targets = %w[/echo /echo? /echo?a=1 /echo?A=1 /echo?a=1& /echo?%61=1 /ech%6f /ech%6F //echo /./echo /x/../echo
                 /echo;a /echo/ /ECHO /echo?a=1;b=2 /echo?a=1&a=2 /echo?a=2&a=1 /echo??]
    first = targets.to_h { |target| [target, get(target)] }
    targets.each do |target|
      assert_equal of(first[target]), of(get(target)), target
      assert_equal [HIT, true], [says(get(target)), says(first[target]).end_with?("stored")], target
    end
  end

  def test_the_host_counts
    hosts = %w[test TeSt test:80 test:080 test:1234 test. evil.example 127.0.0.1 [::1] [0::1] test:]
    answers = hosts.to_h { |host| [host, get("/echo", { "Host" => host })] }
    hosts.each do |host|
      echo = JSON.parse(get("/echo", { "Host" => host }).body)
      assert_equal [host, JSON.parse(answers[host].body)["count"]], echo.values_at("HTTP_HOST", "count"), host
    end
    assert_equal hosts.length, answers.values.map(&:body).uniq.length
    server.request("PUT", "/echo", {}, "x")
    answers.slice("test", "TeSt").each do |host, answer|
      refute_equal answer.body, get("/echo", { "Host" => host }).body, host
    end
  end

  # What such an application answers to the name in other letters is not for those who write it as it is.
  def test_an_application_that_compares_hosts_exactly
    server("--http2-cleartext", "on")
    answers = %w[Test test].map { |host| get("/only-test", { "Host" => host }) }
    assert_equal [[404, "no such site"], [200, "here"]], of(*answers)
    Http2Client.tcp(server.port).greet.use do |client|
      %w[TEST test].each_with_index do |host, number|
        client.send_request(1 + (2 * number), "GET", "/only-test?2", {}, authority: host)
        assert_equal host == "test" ? 200 : 404, client.answer(1 + (2 * number)).status
      end
    end
  end

  # The same for simultaneous requests: none waits for the answer to the other.
  def test_names_in_other_letters_do_not_wait_for_each_other
    client = server.connect
    client.send_request("GET", "/slow", { "Host" => "TEST" })
    wait_for("the request") { asked("/slow") == 1 }
    other = server.connect
    other.send_request("GET", "/slow", { "Host" => "test" })
    wait_for("the other request") { asked("/slow") == 2 }
    touch("go")
    assert_equal ["slow 1", "slow 2"], [client, other].map { |one| one.read_response.body }.sort
  ensure
    client&.close
    other&.close
  end

  # A GET that announces no body has more in its env than a GET without such fields.
  def test_fields_about_a_body_that_is_none_count
    with = [{ "Content-Length" => "0" }, { "Content-Type" => "text/evil" }]
    with.each { |fields| get("/echo", fields) }
    clean = JSON.parse(get("/echo").body)
    assert_equal [3, nil, nil], clean.values_at("count", "CONTENT_LENGTH", "CONTENT_TYPE")
  end

  def test_a_whole_uri_as_the_target_is_not_cached
    2.times do
      answer = server.request("GET", "http://evil.example/echo", { "Host" => "test" })
      assert_equal "highball; fwd=bypass", says(answer)
    end
    refute_includes get("/echo").body, "evil"
    assert_equal MISS, says(server.request("GET", "/echo?10", {}, version: "1.0")).delete_suffix("; stored")
    server.connect do |client|
      client.write("GET /echo?11 HTTP/1.0\r\n\r\n")
      assert_equal "highball; fwd=bypass", says(client.read_response)
    end
  end

  # A body is not part of the key.
  def test_a_get_with_a_body_is_neither_stored_nor_answered
    fat = server.request("GET", "/echo", {}, "evil=1")
    assert_equal "highball; fwd=bypass", says(fat)
    assert_includes fat.body, "evil=1"
    chunked = "GET /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" \
              "6\r\nevil=3\r\n0\r\n\r\n"
    assert_includes server.exchange(chunked).first.body, "evil=3"
    refute_includes get("/echo").body, "evil"
    assert_includes server.request("GET", "/echo", {}, "evil=2").body, "evil=2"
  end

  def test_parts_are_neither_stored_nor_answered
    { "Range" => "bytes=0-0", "If-Range" => '"x"', "If-Match" => '"x"',
      "If-Unmodified-Since" => "Sun, 06 Nov 1994 08:49:37 GMT", "Upgrade" => "x" }.each do |name, value|
      more = name == "Upgrade" ? { "Connection" => "upgrade" } : {}
      2.times { assert_equal "highball; fwd=bypass", says(get("/public", { name => value }.merge(more))), name }
    end
    assert_equal STORED, says(get("/public"))
    assert_equal "highball; fwd=bypass", says(get("/public", { "Range" => "bytes=0-0" }))
  end

  # An answer to one user is neither stored nor is a stored one sent to a user.
  def test_requests_with_credentials_go_to_the_application
    basic = { "Authorization" => "Basic YTpi" }
    answers = [get("/public", basic), get("/public", basic), get("/public"), get("/public", basic)]
    assert_equal ["1: 1", "1: 2", "1: 3", "1: 4"], answers.map(&:body)
    assert_equal "1: 3", get("/public").body
  end

  def test_an_application_behind_passwords_is_not_cached
    users = File.join(folder_with("users" => "ann:#{BCRYPT}\nbob:#{BCRYPT}\n"), "users")
    @server = serve(folder, "--cache", "8m", "--basic-auth", users)
    ann, ann_again, bob = [by("ann"), by("ann"), by("bob")].map { |user| get("/public", user) }
    assert_equal ["1: 1", "1: 2", "1: 3"], [ann, ann_again, bob].map(&:body)
    assert_nil ann_again["cache-status"]
    assert_equal 401, get("/public").status
  end

  def test_errors_are_not_stored
    ["GET /broken HTTP/1.1\r\nHost: test\r\nX: \0\r\n\r\n", "GET /public HTTP/1.1\r\nHost: test\r\nBad Name: 1\r\n\r\n",
     "GET /public HTTP/1.1\r\nHost: test\r\nX: #{'x' * 100_000}\r\n\r\n", "GET /public HTTP/9.9\r\nHost: test\r\n\r\n",
     "GET /public HTTP/1.1\r\nHost: test\r\nExpect: x\r\n\r\n"].each do |bytes|
      refused = server.exchange(bytes).first
      assert_operator refused.status, :>=, 400, bytes[0, 60]
      assert_nil refused["cache-status"]
    end
    assert_equal [200, STORED], [(answer = get("/public")).status, says(answer)]
    %w[/broken /bad].each { |path| 2.times { assert_equal MISS, says(get(path)), path } }
  end

  def test_fields_cannot_be_split
    2.times { assert_nil get("/public%0d%0aset-cookie:%20evil=1")["set-cookie"] }
    get("/language", { "Accept-Language" => "de\tx: y" })
    assert_equal [" 2"], [get("/language").body]
  end

  # A name that differs in an underscore alone never reaches the application, and is another one for nobody.
  def test_names_with_underscores
    get("/echo", { "X_Forwarded_Host" => "evil.example", "x_original_url" => "/evil" })
    answer = get("/echo")
    assert_equal HIT, says(answer)
    refute_includes answer.body, "evil"
  end

  def test_repeated_fields
    one = server.exchange("GET /echo HTTP/1.1\r\nHost: test\r\nX-A: 1\r\nX-A: 2\r\nConnection: close\r\n\r\n").first
    other = server.exchange("GET /echo HTTP/1.1\r\nHost: test\r\nX-A: 2\r\nX-A: 1\r\nConnection: close\r\n\r\n").first
    values = [one, other].map { |answer| JSON.parse(answer.body)["HTTP_X_A"] }
    assert_equal ["1, 2", "2, 1"], values
    assert_equal "2, 1", JSON.parse(get("/echo", { "X-A" => "2, 1" }).body)["HTTP_X_A"]
  end

  # What is stored by one protocol is for the same request of another, and for no other.
  def test_protocols_share_what_is_the_same
    server("--http2-cleartext", "on", "-b", "fastcgi://127.0.0.1:0")
    answer = get("/echo")
    Http2Client.tcp(server.port).greet.use do |connection|
      assert_equal answer.body, connection.ask(1, "GET", "/echo").body
      assert_includes connection.ask(3, "GET", "/echo", { "x-forwarded-host" => "evil.example" }).body, "evil"
    end
    port = server.status["binds"].filter_map { |bind| bind[%r{\Afastcgi://127\.0\.0\.1:(\d+)\z}, 1] }.first.to_i
    FastcgiClient.tcp(port).use do |connection|
      evil = connection.request("GET", "/echo", { "Host" => "test", "X-Forwarded-Host" => "evil.example" })
      assert_includes evil.body, "evil"
    end
    assert_equal answer.body, get("/echo").body
  end

  # A proxy that is trusted reports the scheme; from another client, such fields count for nothing.
  def test_the_scheme_that_a_proxy_reports
    server("--trusted-proxies", "127.0.0.1")
    schemes = %w[http https].to_h { |scheme| [scheme, get("/echo", { "X-Forwarded-Proto" => scheme }).body] }
    assert_equal(%w[http https], schemes.values.map { |body| JSON.parse(body)["rack.url_scheme"] })
    schemes.each { |scheme, body| assert_equal body, get("/echo", { "X-Forwarded-Proto" => scheme }).body }
  end

  def test_fields_of_clients_that_are_not_trusted_are_not_part_of_the_key
    server("--trusted-proxies", "192.0.2.1")
    get("/echo", { "X-Forwarded-Host" => "evil.example" })
    answer = get("/echo")
    assert_equal HIT, says(answer)
    refute_includes answer.body, "evil"
  end

  # Many answers take no more memory than is allowed, and what is used stays.
  def test_memory_is_bounded
    server(cache: "2m")
    400.times do |number|
      get("/sized?20000&#{number}")
      assert_equal "1: 1", get("/public").body
    end
    cache = server.status.fetch("cache")
    assert_operator cache["bytes"], :<=, 2 * MIB
    assert_operator cache["responses"], :>, 50
    assert_equal 1, asked("/public")
    assert_equal HIT, says(get("/sized?20000&399"))
    assert_equal STORED.sub("uri", "uri"), says(get("/sized?20000&0"))
  end

  def test_an_answer_that_is_too_large_is_not_stored
    server(cache: "2m")
    2.times { assert_equal 300_000, get("/sized?300000").body.bytesize }
    assert_equal 2, asked("/sized")
    assert_equal [MISS, HIT], [says(get("/sized?300000")), get("/sized?200000") && says(get("/sized?200000"))]
  end

  # One who asks for many variants of a page does not drive out the variant that others ask for.
  def test_variants_of_a_page_are_bounded
    200.times do |number|
      get("/echo", { "X-Junk" => number.to_s })
      get("/echo")
    end
    assert_equal 201, asked("/echo")
    assert_operator server.status.dig("cache", "responses"), :<=, 70
    200.times { |number| get("/language", { "Accept-Language" => "x#{number}" }) }
    assert_operator server.status.dig("cache", "responses"), :<=, 140
  end

  # One who makes an answer useless for the cache (by a cookie, say) only stops others from waiting for it.
  def test_a_useless_answer_does_not_prevent_a_useful_one
    get("/public", { "Cache-Control" => "no-store" })
    get("/cookie")
    assert_equal STORED, says(get("/public"))
    get("/tagged", { "If-None-Match" => '"v1"' })
    assert_equal STORED, says(get("/tagged"))
  end

  # Clients that read slowly share the memory of the answer.
  def test_slow_clients_of_a_stored_answer_take_little_memory
    server(cache: "64m")
    get("/large")
    before = resident_bytes
    clients = Array.new(100) { server.connect.tap { |client| client.send_request("GET", "/large") } }
    3.times { get("/counts") }
    assert_operator resident_bytes - before, :<, 100 * MIB
    clients.first(3).each { |client| assert_equal 3_000_000, client.read_response.body.bytesize }
  ensure
    clients&.each(&:close)
  end

  # What was asked before a change does not come back after it.
  def test_an_answer_from_before_a_change_is_not_stored
    client = server.connect
    client.send_request("GET", "/slow")
    wait_for("the request") { asked("/slow") == 1 }
    assert_equal 200, server.request("PUT", "/slow", {}, "x").status
    touch("go")
    assert_match(/\Aslow/, client.read_response.body)
    assert_equal STORED, says(get("/slow"))
  ensure
    client&.close
  end

  private

  def resident_bytes = File.read("/proc/#{server.server_pid}/status")[/^VmRSS:\s+(\d+) kB/, 1].to_i * 1024
end
