# frozen_string_literal: true

require "zlib"
require_relative "../../support/fastcgi_client"
require_relative "../../support/http2_client"
require_relative "../../support/sent_files_test_case"

# Files that applications send: as a body that responds to `to_path`, or by naming them in `X-Sendfile` and
# `X-Accel-Redirect`.
class SentFilesTest < SentFilesTestCase
  LARGE = 5 * 1024 * MIB
  MARK = "at the end"

  # --- naming files

  def test_the_file_that_a_header_names_is_sent
    serve_files
    { "X-Sendfile" => ["#{@folder}/storage/a.txt", CONTENT],
      "x-sendfile" => ["#{@folder}/storage//./odd name%?#.txt", "odd"],
      "X-SENDFILE" => ["#{@folder}/protected/a.txt", "protected"],
      "X-Accel-Redirect" => ["/files/a%2etxt?query=1", "protected"],
      "x-accel-redirect" => ["/files/deep/b.txt", "b"],
      "X-Accel-redirect" => ["#{@folder}/storage/odd%20name%25%3F%23.txt", "odd"] }.each do |name, (value, content)|
      answer = named(name => value, "set-cookie" => "a=b")
      assert_equal [200, content], [answer.status, answer.body], value
      assert_equal [content.bytesize.to_s, "text/x", "a=b", "bytes"],
                   of_answer(answer, *%w[content-length content-type set-cookie accept-ranges])
      assert_match(/\A"\h+-\h+-\h+-\h+"\z/, answer["etag"])
      refute_includes answer.fields.map(&:first).join(" "), "x-"
    end
  end

  def test_responses_of_other_shapes_name_files_too
    serve_files
    path = "#{@folder}/storage/a.txt"
    listed = @server.get("/listed?#{query(headers: { 'X-Sendfile' => path })}")
    assert_equal [200, CONTENT, nil], [listed.status, listed.body, listed["x-sendfile"]]
    both = named("X-Sendfile" => path, "X-Accel-Redirect" => "/files/a.txt")
    assert_equal [CONTENT, nil, nil], [both.body, both["x-sendfile"], both["x-accel-redirect"]]
    assert_equal [200, "", "0"],
                 of_answer(named("X-Sendfile" => "#{@folder}/storage/empty"), :status, :body, "content-length")
    assert_equal [404, CONTENT, nil], of_answer(named({ "X-Sendfile" => path }, status: 404), :status, :body, "etag")
    assert_equal [204, "", nil], of_answer(named({ "X-Sendfile" => path }, status: 204), :status, :body, "x-sendfile")
    # The part that the application speaks of is one of the body that it has left empty.
    part = named({ "X-Sendfile" => path, "content-range" => "bytes 0-1/2" }, status: 206)
    assert_equal [200, CONTENT, nil], of_answer(part, :status, :body, "content-range")
  end

  # --- parts and conditions

  def test_parts_and_conditions_hold_for_all_files_that_are_sent
    serve_files
    path = "#{@folder}/storage/a.txt"
    disposition = { "content-disposition" => "attachment", "content-security-policy" => "sandbox" }
    ["/body?#{query(path: path, headers: disposition)}",
     "/named?#{query(headers: disposition.merge('X-Sendfile' => path))}"].each do |target|
      assert_parts(target)
      assert_conditions(target)
    end
  end

  def test_what_the_application_says_of_a_file_counts
    serve_files
    path = "#{@folder}/storage/a.txt"
    headers = { "X-Sendfile" => path, "etag" => 'W/"own"', "last-modified" => "Sat, 01 Jan 2000 00:00:00 GMT",
                "accept-ranges" => "none" }
    answer = named(headers)
    assert_equal ['W/"own"', "Sat, 01 Jan 2000 00:00:00 GMT", ["none"]],
                 [answer["etag"], answer["last-modified"], answer.values("accept-ranges")]
    target = "/named?#{query(headers: headers)}"
    assert_equal 304, get(target, "If-None-Match" => '"own"').status
    assert_equal 412, get(target, "If-Match" => 'W/"own"').status
    assert_equal 200, get(target, "If-Range" => 'W/"own"', "Range" => "bytes=0-1").status
    # What it says of another body's length holds for that: the file is sent as before, without parts.
    longer = @server.get("/body?#{query(path: path, headers: { 'content-length' => '4' })}", { "Range" => "bytes=0-1" })
    assert_equal [200, "0123"], [longer.status, longer.body]
  end

  def test_a_range_is_one_of_what_is_on_the_disk_and_the_whole_is_compressed
    text = "some text that gets shorter\n" * 1000
    File.write(File.join(@folder, "storage/long.txt"), text)
    serve_files("--compress", "on")
    headers = { "X-Sendfile" => "#{@folder}/storage/long.txt", "content-type" => "text/plain" }
    whole = named(headers, {}, "Accept-Encoding" => "gzip")
    assert_equal [200, "gzip", nil], of_answer(whole, :status, "content-encoding", "content-length")
    assert_equal text, Zlib.gunzip(whole.body)
    part = named(headers, {}, "Accept-Encoding" => "gzip", "Range" => "bytes=5-8")
    assert_equal [206, "text", nil], of_answer(part, :status, :body, "content-encoding")
    assert_equal 304, named(headers, {}, "Accept-Encoding" => "gzip", "If-None-Match" => whole["etag"]).status
  end

  def test_the_same_over_http_2_and_fastcgi
    serve_files("--http2-cleartext", "on", "-b", "fastcgi://127.0.0.1:0")
    target = "/named?#{query(headers: { 'X-Sendfile' => "#{@folder}/storage/a.txt" })}"
    Http2Client.tcp(@server.port).greet.use do |client|
      answer = client.ask(1, "GET", target, { "range" => "bytes=2-4" })
      assert_equal [206, "234"], [answer.status, answer.body]
    end
    port = @server.status["binds"].filter_map { |bind| bind[%r{\Afastcgi://127\.0\.0\.1:(\d+)\z}, 1] }.first
    FastcgiClient.tcp(port.to_i).use do |client|
      assert_equal [206, "234"], of_answer(client.get(target, { "Range" => "bytes=2-4" }), :status, :body)
      assert_equal 304, client.get(target, { "If-None-Match" => "*" }).status
    end
  end

  # --- large files, slow clients

  def test_parts_of_a_file_of_5_gib
    make_large
    serve_files
    path = "#{@folder}/storage/large"
    { "/body?#{query(path: path)}" => {},
      "/named?#{query(headers: { 'X-Sendfile' => path })}" => {} }.each_key do |target|
      assert_equal [200, LARGE.to_s], of_answer(@server.request("HEAD", target), :status, "content-length")
      last = get(target, "Range" => "bytes=-#{MARK.bytesize}")
      assert_equal [206, MARK, "bytes #{LARGE - MARK.bytesize}-#{LARGE - 1}/#{LARGE}"],
                   of_answer(last, :status, :body, "content-range")
      beyond = get(target, "Range" => "bytes=4294967290-4294967310")
      assert_equal [206, "\0" * 21], of_answer(beyond, :status, :body)
      assert_equal 416, get(target, "Range" => "bytes=#{LARGE}-").status
    end
  end

  def test_the_worker_is_free_while_a_slow_client_reads
    make_large
    serve_files(threads: 1)
    path = "#{@folder}/storage/large"
    ["/body?#{query(path: path)}", "/named?#{query(headers: { 'X-Sendfile' => path })}",
     "/named?#{query(headers: { 'X-Accel-Redirect' => path })}"].each do |target|
      @server.connect do |slow|
        slow.send_request("GET", target)
        assert_match(%r{\AHTTP/1.1 200 OK}, slow.read_bytes(1000))
        5.times { assert_equal 200, @server.get("/env", within: 5).status }
        assert_equal MIB, slow.read_bytes(MIB).bytesize
      end
    end
  end

  def test_a_file_that_is_replaced_or_cut_while_it_is_sent
    path = File.join(@folder, "storage/large")
    serve_files
    target = "/named?#{query(headers: { 'X-Sendfile' => path })}"
    content = Random.new(1).bytes(64 * MIB)
    File.binwrite(path, content)
    while_sending(target) do |client, begun|
      File.write("#{path}.new", "another")
      File.rename("#{path}.new", path)
      assert_equal content, begun + client.read_bytes(content.bytesize - begun.bytesize)
    end
    File.binwrite(path, content)
    while_sending(target) do |client, _|
      File.truncate(path, 0)
      assert_operator rest_of(client).bytesize, :<, content.bytesize - MIB
    end
    assert_equal 200, @server.get("/env").status
  end

  private

  def assert_parts(target)
    { "bytes=2-4" => ["234", "bytes 2-4/16"], "bytes=10-" => ["abcdef", "bytes 10-15/16"],
      "bytes=-2" => ["ef", "bytes 14-15/16"], "bytes=15-99" => ["f", "bytes 15-15/16"] }.each do |range, (part, place)|
      answer = get(target, "Range" => range)
      assert_equal [206, part, place, part.length.to_s, "attachment", "text/x"],
                   of_answer(answer, :status, :body, *%w[content-range content-length content-disposition content-type])
    end
    ["bytes=0-1,3-4", "bytes=5-2", "lines=1-2"].each do |range|
      assert_equal [200, CONTENT], of_answer(get(target, "Range" => range), :status, :body)
    end
    beyond = get(target, "Range" => "bytes=16-")
    assert_equal [416, "", "bytes */16", nil, "sandbox"],
                 of_answer(beyond, :status, :body, *%w[content-range content-disposition content-security-policy])
    assert_equal [200, CONTENT],
                 of_answer(@server.request("POST", target, { "Range" => "bytes=0-1" }, ""), :status, :body)
  end

  def assert_conditions(target)
    head = @server.request("HEAD", target)
    assert_equal [200, "", "16"], of_answer(head, :status, :body, "content-length")
    tag, date = of_answer(head, "etag", "last-modified")
    [{ "If-None-Match" => tag }, { "If-None-Match" => %("x", W/#{tag}) },
     { "If-Modified-Since" => date }].each do |fields|
      answer = get(target, fields)
      assert_equal [304, "", tag, nil, nil, nil, "sandbox"],
                   of_answer(answer, :status, :body, *%w[etag content-type content-disposition content-length
                                                         content-security-policy])
      assert_equal 304, @server.request("HEAD", target, fields).status
    end
    range = { "Range" => "bytes=0-1" }
    { { "If-None-Match" => '"x"' } => 200, { "If-Match" => '"x"' } => 412, { "If-Match" => tag } => 200,
      { "If-Unmodified-Since" => "Sat, 01 Jan 2000 00:00:00 GMT" } => 412, { "If-Range" => tag, **range } => 206,
      { "If-Range" => '"x"', **range } => 200, { "If-Range" => "W/#{tag}", **range } => 200,
      { "If-Range" => date, **range } => 206, { "If-Match" => '"x"', **range } => 412 }.each do |fields, status|
      assert_equal status, get(target, fields).status, fields
    end
  end

  # It takes no room.
  def make_large
    File.open(File.join(@folder, "storage/large"), "wb") do |file|
      file.truncate(LARGE)
      file.pwrite(MARK, LARGE - MARK.bytesize)
    end
  end

  # What comes until the connection ends, by a reset or not.
  def rest_of(client)
    client.read_to_end
  rescue Errno::ECONNRESET
    ""
  end

  # Yields a client that has begun to read the body, and what it has read.
  def while_sending(target)
    @server.connect do |client|
      client.send_request("GET", target)
      head = client.read_bytes(4096)
      yield client, head.split("\r\n\r\n", 2).last
    end
  end
end
