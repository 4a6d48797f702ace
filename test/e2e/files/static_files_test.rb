# frozen_string_literal: true

# marks: root

require "time"
require "zlib"
require_relative "../../support/e2e_test"

# Files of the application's public folder, served without Ruby.
class StaticFilesTest < E2ETest
  # Seconds until a change shows (docs/static-files.md), and some more.
  SEEN_WITHIN = OwnProcesses.spawner? ? 5 : 1

  APP = <<~RUBY
    run ->(env) { [404, { "content-type" => "text/plain", "x-ruby" => "yes" }, [env["PATH_INFO"]]] }
  RUBY
  SCRIPT = "console.log('hello');\n" * 100
  FILES = {
    "config.ru" => APP,
    "secret.txt" => "a secret",
    "public/index.html" => "<h1>home</h1>",
    "public/about.html" => "<h1>about</h1>",
    "public/docs/index.html" => "<h1>docs</h1>",
    "public/app.js" => SCRIPT,
    "public/app.js.gz" => Zlib.gzip(SCRIPT),
    "public/app.js.br" => "pretend brotli",
    "public/style.css" => "body {}",
    "public/both" => "plain",
    "public/both.html" => "page",
    "public/empty.txt" => "",
    "public/a b+c%.txt" => "odd name",
    "public/ünï.txt" => "unicode",
    "public/picture.svg" => "<svg/>",
    "public/data.unknownextension" => "bytes",
    "public/.env" => "PASSWORD=1",
    "public/.git/config" => "[core]",
    "public/.well-known/security.txt" => "Contact: mailto:a@b.example",
    "public/large.bin" => Random.new(4).bytes(3 * E2ETest::MIB)
  }.freeze

  def setup
    super
    @app = folder_with(FILES)
    @server = serve(@app)
  end

  def test_path_path_html_and_index_html
    { "/" => "home", "/index.html" => "home", "/about" => "about", "/about.html" => "about", "/docs" => "docs",
      "/docs/" => "docs" }.each do |path, text|
      answer = @server.get(path)
      assert_equal [200, "<h1>#{text}</h1>"], [answer.status, answer.body], path
      assert_match %r{\Atext/html}, answer["content-type"], path
      assert_nil answer["x-ruby"], path
    end
    assert_equal "yes", @server.get("/missing")["x-ruby"]
    assert_equal "plain", @server.get("/both").body
    assert_equal "odd name", @server.get("/a%20b+c%25.txt").body
    assert_equal "unicode", @server.get("/%C3%BCn%C3%AF.txt").body
    assert_equal "body {}", @server.get("/style.css?v=1").body
  end

  def test_types_lengths_and_validators
    { "/style.css" => "text/css", "/app.js" => %r{\A(text|application)/javascript}, "/picture.svg" => "image/svg+xml",
      "/empty.txt" => "text/plain" }.each do |path, type|
      assert_match type, @server.get(path)["content-type"], path
    end
    answer = @server.get("/style.css")
    assert_equal File.mtime("#{@app}/public/style.css").to_i, Time.httpdate(answer["last-modified"]).to_i
    assert_match(/\A"[^"]+"\z/, answer["etag"])
    head = @server.request("HEAD", "/style.css")
    assert_equal ["7", ""], [head["content-length"], head.body]
    empty = @server.get("/empty.txt")
    assert_equal ["0", ""], [empty["content-length"], empty.body]
  end

  def test_only_get_and_head_are_served
    %w[POST PUT DELETE OPTIONS].each do |method|
      assert_equal "yes", @server.request(method, "/style.css")["x-ruby"], method
    end
  end

  def test_conditional_requests
    etag, modified = @server.get("/style.css").then { |answer| [answer["etag"], answer["last-modified"]] }
    earlier, later = [-60, 60].map { |seconds| (Time.httpdate(modified) + seconds).httpdate }
    {
      { "If-None-Match" => '"other"', "if-none-match" => etag } => 304,
      { "If-Match" => '"other"', "if-match" => etag } => 200,
      { "If-None-Match" => etag } => 304,
      { "If-None-Match" => "\"other\", #{etag}" } => 304,
      { "If-None-Match" => "W/#{etag}" } => 304,
      { "If-None-Match" => "*" } => 304,
      { "If-None-Match" => '"other"' } => 200,
      { "If-None-Match" => '"other"', "If-Modified-Since" => modified } => 200,
      { "If-Modified-Since" => modified } => 304,
      { "If-Modified-Since" => later } => 304,
      { "If-Modified-Since" => earlier } => 200,
      { "If-Modified-Since" => "garbage" } => 200,
      { "If-Match" => etag } => 200,
      { "If-Match" => "*" } => 200,
      { "If-Match" => '"other"' } => 412,
      { "If-Match" => "W/#{etag}" } => 412,
      { "If-Match" => '"other"', "If-None-Match" => etag } => 412,
      { "If-Match" => etag, "If-Unmodified-Since" => earlier } => 200,
      { "If-Unmodified-Since" => modified } => 200,
      { "If-Unmodified-Since" => earlier } => 412,
      { "Range" => "bytes=0-1", "If-None-Match" => etag } => 304,
      { "Range" => "bytes=0-1", "If-Range" => later } => 200
    }.each do |headers, status|
      answer = @server.get("/style.css", headers)
      assert_equal status, answer.status, headers
      assert_equal etag, answer["etag"], headers unless status == 412
    end
  end

  def test_ranges
    large = FILES.fetch("public/large.bin")
    last = large.bytesize - 1
    { "bytes=0-99" => 0..99, "bytes=100-" => 100..last, "bytes=-500" => (last - 499)..last,
      "bytes=0-99999999" => 0..last }.each do |range, expected|
      answer = @server.get("/large.bin", { "Range" => range })
      assert_equal 206, answer.status, range
      assert_equal "bytes #{expected.begin}-#{expected.end}/#{large.bytesize}", answer["content-range"], range
      assert_equal large[expected], answer.body, range
    end
    unsatisfiable = @server.get("/large.bin", { "Range" => "bytes=99999999-" })
    assert_equal [416, "bytes */#{large.bytesize}"], [unsatisfiable.status, unsatisfiable["content-range"]]
    ["bytes=5-1", "lines=1-2", "bytes=a-b", "bytes"].each do |range|
      assert_equal 200, @server.get("/large.bin", { "Range" => range }).status, range
    end
  end

  def test_a_range_of_another_version_is_the_whole
    etag = @server.get("/large.bin")["etag"]
    assert_equal 206, @server.get("/large.bin", { "Range" => "bytes=0-9", "If-Range" => etag }).status
    assert_equal 200, @server.get("/large.bin", { "Range" => "bytes=0-9", "If-Range" => '"other"' }).status
  end

  def test_a_large_file_arrives_whole
    assert_equal FILES.fetch("public/large.bin"), @server.get("/large.bin").body
  end

  def test_compressed_siblings
    plain = @server.get("/app.js")
    assert_equal [SCRIPT, nil], [plain.body, plain["content-encoding"]]
    zipped = @server.get("/app.js", { "Accept-Encoding" => "gzip, deflate" })
    assert_equal [SCRIPT, "gzip"], [Zlib.gunzip(zipped.body), zipped["content-encoding"]]
    brotli = @server.get("/app.js", { "Accept-Encoding" => "gzip, br" })
    assert_equal ["pretend brotli", "br"], [brotli.body, brotli["content-encoding"]]
    assert_equal plain["content-type"], zipped["content-type"]
    [plain, zipped, brotli].each { |answer| assert_match(/accept-encoding/i, answer["vary"]) }
    assert_equal 3, [plain, zipped, brotli].map { |answer| answer["etag"] }.uniq.length
    refused = @server.get("/app.js", { "Accept-Encoding" => "gzip;q=0, br;q=0" })
    assert_nil refused["content-encoding"]
    itself = @server.get("/app.js.gz", { "Accept-Encoding" => "gzip" })
    assert_equal ["application/gzip", nil], [itself["content-type"], itself["content-encoding"]]
  end

  def test_dotfiles_are_refused_except_well_known
    ["/.env", "/.git/config", "/%2eenv", "/docs/../.env"].each do |path|
      answer = @server.get(path)
      refute_equal 200, answer.status, path
      refute_includes answer.body, "PASSWORD"
    end
    assert_equal 200, @server.get("/.well-known/security.txt").status
  end

  def test_nothing_outside_is_reached
    up = %w[.. %2e%2e %2E. .%2e %252e%252e ..%00 .%00. %c0%ae%c0%ae ..; ..\\ ..%5c]
    slash = ["/", "//", "%2f", "%2F", "%5c", "\\", "%252f", "/./"]
    up.product(slash).map(&:join).each do |step|
      ["/#{step}secret.txt", "//#{step}secret.txt", "/docs/#{step}#{step}secret.txt",
       "/docs#{step[-1]}#{step}#{step}secret.txt"].each do |path|
        answer = @server.get(path)
        refute_includes answer.body, "a secret", path
        assert_includes [400, 403, 404], answer.status, path
      end
    end
  end

  def test_symbolic_links_are_followed_unless_that_is_refused
    File.symlink("#{@app}/secret.txt", "#{@app}/public/link.txt")
    File.symlink("#{@app}/nowhere", "#{@app}/public/broken.txt")
    wait_for("the new name", within: SEEN_WITHIN) { @server.get("/link.txt").body == "a secret" }
    refute_equal 200, @server.get("/broken.txt").status
    strict = serve(@app, "--follow-symlinks", "off")
    refute_includes strict.get("/link.txt").body, "a secret"
    assert_equal "body {}", strict.get("/style.css").body
  end

  def test_what_is_no_regular_file_is_not_served
    File.mkfifo("#{@app}/public/docs/pipe")
    refute_equal 200, @server.get("/docs/pipe").status
    refute_equal 200, @server.get("/style.css/").status
  end

  # The front checks files several times a second (once, where an opener opens them), not for every request.
  def test_changes_are_seen_soon
    path = "#{@app}/public/new.txt"
    File.write(path, "first")
    wait_for("the new file", within: SEEN_WITHIN) { @server.get("/new.txt").body == "first" }
    first = @server.get("/new.txt")
    File.write(path, "second!")
    wait_for("the change", within: SEEN_WITHIN) do
      second = @server.get("/new.txt", { "If-None-Match" => first["etag"] })
      [second.status, second.body] == [200, "second!"]
    end
    File.delete(path)
    wait_for("the end of the file", within: SEEN_WITHIN) { @server.get("/new.txt")["x-ruby"] == "yes" }
  end

  def test_they_can_be_switched_off
    assert_equal "yes", serve(@app, "--static-files", "off", ready: "/ready").get("/style.css")["x-ruby"]
  end

  def test_the_headers_that_rails_is_configured_with
    blog = serve(copy_of_example("blog"))
    answer = blog.get("/stylesheets/application.css")
    assert_equal [200, "public, max-age=3600"], [answer.status, answer["cache-control"]]
  end
end
