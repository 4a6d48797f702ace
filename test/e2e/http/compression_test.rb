# frozen_string_literal: true

require "json"
require "open3"
require "zlib"
require_relative "../../support/gateway_test_case"

# Responses of the application, compressed for clients that ask for it.
class CompressionTest < GatewayTestCase
  APP = <<~RUBY
    require "json"

    EVENTS = Hash.new { |all, name| all[name] = Queue.new }
    PAGE = Array.new(2000) { |row| "<tr><td>row \#{row * 7919 % 1013}</td></tr>\\n" }.join
    HTML = { "content-type" => "text/html; charset=utf-8" }.freeze
    PLACES = {
      "/page" => -> (_) { [200, HTML, [PAGE]] },
      "/tagged" => -> (_) { [200, HTML.merge("etag" => '"v1"', "accept-ranges" => "bytes"), [PAGE]] },
      "/still" => -> (env) { [env["HTTP_IF_NONE_MATCH"] ? 304 : 200, HTML.merge("etag" => '"v1"'), []] },
      "/small" => -> (_) { [200, HTML.merge("content-length" => "500"), ["x" * 500]] },
      "/json" => -> (_) { [200, { "content-type" => "application/json" }, [JSON.generate(rows: (1..5000).to_a)]] },
      "/in-parts" => -> (_) { [200, HTML, PAGE.lines.each_slice(100).map(&:join)] },
      "/encoded" => -> (_) { [200, HTML.merge("content-encoding" => "gzip"), [PAGE]] },
      "/fixed" => -> (_) { [200, HTML.merge("cache-control" => "no-transform"), [PAGE]] },
      "/picture" => -> (_) { [200, { "content-type" => "image/png" }, [PAGE]] },
      "/part" => -> (_) { [206, HTML.merge("content-range" => "bytes 0-9/100"), ["x" * 10]] },
      "/cookie" => -> (_) { [200, HTML.merge("set-cookie" => "a=b"), [PAGE]] },
      "/varies" => -> (_) { [200, HTML.merge("vary" => "Cookie"), [PAGE]] },
      "/large" => -> (_) { [200, HTML, Enumerator.new { |out| 200.times { out << PAGE } }] },
      "/cut" => -> (_) { [200, HTML, Enumerator.new { |out| out << PAGE; raise "broken" }] }
    }.freeze

    run lambda { |env|
      path, name = env["PATH_INFO"], env["QUERY_STRING"]
      case path
      when "/events"
        body = proc do |stream|
          queue = EVENTS[name]
          stream.write("data: hello\\n\\n")
          while (event = queue.pop)
            stream.write("data: \#{event}\\n\\n")
          end
          stream.close
        end
        [200, { "content-type" => "text/event-stream", "cache-control" => "no-cache" }, body]
      when "/publish"
        text = env["rack.input"].read
        EVENTS.each_value { |queue| queue << (text.empty? ? nil : text) }
        [200, {}, []]
      else
        PLACES.fetch(path) { ->(_) { [200, {}, []] } }.call(env)
      end
    }
  RUBY

  def server(*options, **settings)
    @server ||= serve(folder_with("config.ru" => APP), *options, **settings)
  end

  def get(path, encodings, headers = {}, method: "GET")
    server.request(method, path, { "Accept-Encoding" => encodings }.merge(headers))
  end

  def page = @page ||= server.get("/page").body

  # What a client reads.
  def decoded(answer)
    case answer["content-encoding"]
    when nil then answer.body
    when "gzip" then Zlib.gunzip(answer.body)
    when "zstd" then piped(answer.body, "zstd", "-dcq")
    else flunk "content-encoding: #{answer['content-encoding']}"
    end
  end

  def piped(input, *command)
    output, status = Open3.capture2(*command, stdin_data: input, binmode: true)
    assert_predicate status, :success?, command.join(" ")
    output
  end

  def of(answer) = [answer.status, answer["content-encoding"], answer["vary"]]

  def curl(*arguments)
    server
    piped("", "curl", "--silent", "--show-error", "--fail", "--max-time", "20", *arguments)
  end

  def test_the_coding_is_the_one_that_the_client_prefers
    { "gzip" => "gzip", "zstd" => "zstd", "gzip, deflate, br, zstd" => "zstd", "gzip, deflate, br" => "br",
      "zstd;q=0.5, gzip" => "gzip", "*" => "zstd", "x-gzip" => "gzip", "identity" => nil, "gzip;q=0" => nil,
      "deflate" => nil, "" => nil }.each do |accepted, coding|
      answer = get("/page", accepted)
      assert_equal [200, coding, "accept-encoding"], of(answer), accepted
      assert_equal answer.body.bytesize.to_s, answer["content-length"], accepted
      assert_equal page, decoded(answer), accepted unless coding == "br"
      assert_operator answer.body.bytesize, :<, page.bytesize / 3, accepted if coding
    end
    assert_equal [200, nil, nil], of(server.get("/page"))
  end

  def test_curl_reads_every_coding
    features = Open3.capture2("curl", "--version").first
    codings = { "gzip" => "libz", "br" => "brotli", "zstd" => "zstd" }.select { |_, name| features.include?(name) }
    refute_empty codings
    codings.each_key do |coding|
      %w[/page /json /in-parts /large].each do |path|
        read = curl("--compressed", "-H", "Accept-Encoding: #{coding}", "http://127.0.0.1:#{server.port}#{path}")
        assert_equal server.get(path).body, read.b, "#{coding} #{path}"
      end
    end
  end

  def test_what_is_not_compressed
    %w[/small /encoded /fixed /picture /part].each do |path|
      plain = server.get(path)
      answer = get(path, "gzip, zstd")
      assert_equal [plain.status, plain.body, plain["content-encoding"]],
                   [answer.status, answer.body, answer["content-encoding"]], path
      assert_nil answer["vary"], path
    end
    assert_equal "Cookie, accept-encoding", get("/varies", "gzip")["vary"]
  end

  def test_head_has_the_fields_of_get
    %w[/tagged /small].each do |path|
      get, head = %w[GET HEAD].map { |method| get(path, "gzip", method: method) }
      assert_empty head.body
      of = ->(answer) { %w[content-encoding vary etag content-type].map { |name| answer[name] } }
      assert_equal of[get], of[head], path
    end
  end

  def test_a_compressed_page_is_revalidated_by_its_weak_tag
    answer = get("/tagged", "gzip")
    assert_equal ['W/"v1"', nil], [answer["etag"], answer["accept-ranges"]]
    plain = server.get("/tagged")
    assert_equal ['"v1"', "bytes"], [plain["etag"], plain["accept-ranges"]]
    [['W/"v1"', 304], ['"other", W/"v1"', 304], ['W/"other"', 200]].each do |tags, status|
      again = get("/tagged", "gzip", { "If-None-Match" => tags })
      assert_equal [status, 'W/"v1"', "accept-encoding"], [again.status, again["etag"], again["vary"]], tags
      assert_empty again.body if status == 304
    end
    assert_equal 'W/"v1"', get("/still", "gzip", { "If-None-Match" => 'W/"v1"' })["etag"]
    assert_equal '"v1"', get("/still", "gzip", { "If-None-Match" => '"v1"' })["etag"], "has the uncompressed page"
    assert_equal 200, get("/tagged", "gzip").status, "the connections are in order"
  end

  def test_the_length_of_a_page_tells_another_site_nothing
    session = { "Cookie" => "session=1" }
    assert_equal "zstd", get("/page?q=guess", "zstd", session)["content-encoding"]
    assert_equal "zstd", get("/cookie", "zstd", session)["content-encoding"]
    refused = [get("/cookie?q=guess", "zstd", session),
               get("/page", "zstd", session.merge("Sec-Fetch-Site" => "cross-site"))]
    refused.each { |answer| assert_equal [nil, page], [answer["content-encoding"], answer.body] }
    own = session.merge("Sec-Fetch-Site" => "same-origin")
    assert_equal "zstd", get("/cookie?q=word", "zstd", own)["content-encoding"]
  end

  def test_hostile_accept_encoding
    hostile = ["gzip;q=1#{'0' * 500}", ";" * 1000, "," * 7000, "gzip;q=0.#{'9' * 900}", "\t,\t;q=", "zs\x80td",
               "gzip;;q=1", "*;q=NaN", "\"gzip\""]
    hostile.each do |accepted|
      answer = get("/page", accepted)
      assert_equal [200, nil, page], [answer.status, answer["content-encoding"], answer.body], accepted[0, 40]
    end
    many = server.connect do |connection|
      fields = ["Host: a", *["Accept-Encoding: br;q=0.1"] * 90, "Accept-Encoding: gzip"]
      connection.write("GET /page HTTP/1.1\r\n#{fields.join("\r\n")}\r\n\r\n")
      connection.read_response
    end
    assert_equal "gzip", many["content-encoding"]
    assert_equal 431, get("/page", "gzip, " * 11_000).status
  end

  def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one
    # The rest may come in the chunk that is missing.
    assert_raises(EOFError, Errno::ECONNRESET) { get("/cut", "gzip") }
    assert_equal 200, get("/page", "gzip").status
  end

  # What a client has read of an event stream, while it goes on.
  class EventStream
    def initialize(server, target)
      @read = Queue.new
      @text = +""
      @thread = Thread.new { follow(server, target) }
    end

    def next_event
      until @text.include?("\n\n")
        Deadline.wait("an event, after #{@text.inspect}", within: 20) { !@read.empty? }
        @text << @read.pop
      end
      @text.slice!(/.*?\n\n/m)
    end

    def end
      @thread.value
    end

    private

    def follow(server, target)
      inflate = Zlib::Inflate.new(31)
      server.connect do |connection|
        connection.send_request("GET", target, { "Accept-Encoding" => "gzip" })
        answer = connection.read_response { |piece| @read << inflate.inflate(piece) }
        [answer["content-encoding"], inflate.finished?]
      end
    end
  end

  def test_every_client_of_an_event_stream_gets_each_event_at_once
    server(threads: 14)
    streams = Array.new(12) { |index| EventStream.new(server, "/events?#{index}") }
    streams.each { |stream| assert_equal "data: hello\n\n", stream.next_event }
    20.times do |number|
      event = "event #{number} #{'x' * (number * 100)}"
      server.request("POST", "/publish", {}, event)
      # The next event is not made before all have this one.
      streams.each { |stream| assert_equal "data: #{event}\n\n", stream.next_event }
    end
    server.request("POST", "/publish", {}, "")
    streams.each { |stream| assert_equal ["gzip", true], stream.end }
  end

  def test_a_client_that_reads_nothing_holds_nothing_up
    server(threads: 1)
    slow = server.stranger
    slow.write("GET /large HTTP/1.1\r\nHost: a\r\nAccept-Encoding: identity;q=0, gzip\r\n\r\n")
    20.times { assert_equal page, decoded(get("/page", "gzip")) }
    body = slow.read_response(within: 60).body
    assert_equal page * 200, Zlib.gunzip(body)
  ensure
    slow&.close
  end

  def test_static_files_are_compressed_once
    script = "console.log('hello');\n" * 1000
    @server = serve(folder_with("config.ru" => APP, "public/app.js" => script, "public/app.png" => script))
    tags = %w[gzip zstd gzip].map do |coding|
      answer = get("/app.js", coding)
      assert_equal [[200, coding, "accept-encoding"], script], [of(answer), decoded(answer)]
      answer["etag"]
    end
    assert_equal 1, tags.uniq.length
    assert_equal 304, get("/app.js", "br", { "If-None-Match" => tags.first }).status
    part = get("/app.js", "gzip", { "Range" => "bytes=5-14" })
    assert_equal [206, script[5, 10]], [part.status, part.body]
    assert_equal [200, nil, nil], of(get("/app.png", "gzip"))
  end

  def test_web_servers_get_it_compressed_too
    @server = serve_all(folder_with("config.ru" => APP))
    with_each(@server) do |connection, protocol|
      %w[/page /in-parts].each do |path|
        answer = connection.get(path, { "Accept-Encoding" => "gzip" })
        assert_equal [200, "gzip", "accept-encoding"], of(answer), protocol
        assert_equal page, decoded(answer), protocol
      end
    end
  end

  def test_pages_of_rails
    @server = serve(copy_of_example("blog"))
    plain, page = %w[identity gzip].map { |accepted| get("/", accepted, { "Host" => "127.0.0.1" }) }
    assert_equal ["gzip", nil], [page["content-encoding"], plain["content-encoding"]]
    # Tokens and nonces are others each time.
    text = ->(answer) { decoded(answer).gsub(/<(meta|script|input)[^>]*>/, "") }
    assert_equal text[plain], text[page]
    assert_operator page.body.bytesize, :<, plain.body.bytesize
    again = get("/", "gzip", { "Host" => "127.0.0.1", "If-None-Match" => page["etag"] })
    assert_includes [200, 304], again.status
    head = get("/", "gzip", { "Host" => "127.0.0.1" }, method: "HEAD")
    assert_equal of(page), of(head)
    assert_equal "", head.body
  end

  def test_off_means_off_and_so_does_development
    @server = serve(folder_with("config.ru" => APP), "--compress", "off")
    assert_equal [200, nil, nil], of(get("/page", "gzip"))
    @server = serve(folder_with("config.ru" => APP), environment: "development")
    assert_nil get("/page", "gzip")["content-encoding"]
  end
end
