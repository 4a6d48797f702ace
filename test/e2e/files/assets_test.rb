# frozen_string_literal: true

# marks: long

require_relative "../../support/asset_app"
require_relative "../../support/e2e_test"

# Assets of a Rails application: the front serves them without Ruby, with the same answers as Rails.
class AssetsTest < E2ETest
  IMMUTABLE = "public, max-age=31536000, immutable"
  SHA = Digest::SHA256.hexdigest("a")
  # Built files by their path, and whether their names say that they never change.
  BUILT = {
    "/assets/application-#{SHA}.css" => true, "/assets/application-#{SHA}.js.map" => true,
    "/assets/icons/a-0123abcd.svg" => true, "/packs/js/application-d2b3c4f5a6978812bcde.js" => true,
    "/packs/media/logo-#{SHA[0, 32]}.png" => true, "/vite/assets/index-4kT_z8-X.js" => true,
    "/assets/photo-20240101.jpg" => false, "/assets/application.css" => false, "/packs/manifest.json" => false,
    "/elsewhere/application-#{SHA}.css" => false, "/robots.txt" => false
  }.freeze

  def test_built_assets_never_reach_ruby_in_production
    server = serve(app_with_built_assets)
    before = reached
    BUILT.each do |path, immutable|
      answer = server.get(path)
      assert_equal [200, path, immutable ? IMMUTABLE : nil], [answer.status, answer.body, answer["cache-control"]], path
      assert_equal 304, server.get(path, { "If-None-Match" => answer["etag"] }).status, path
      assert_equal 304, server.get(path, { "If-Modified-Since" => answer["last-modified"] }).status, path
    end
    assert_equal before, reached
  end

  def test_compressed_siblings_of_built_assets
    server = serve(app_with_built_assets)
    path = "/assets/application-#{SHA}.css"
    { "gzip, br" => %w[br brotli], "gzip" => %w[gzip zipped], "" => [nil, path] }.each do |accepted, expected|
      answer = server.get(path, { "Accept-Encoding" => accepted })
      assert_equal [*expected, IMMUTABLE, "accept-encoding"],
                   [answer["content-encoding"], answer.body, answer["cache-control"], answer["vary"]]
    end
    assert_empty reached_assets
  end

  def test_headers_of_the_application_take_precedence
    server = serve(app_with_built_assets, env: { "OWN_HEADER" => "public, max-age=5" })
    BUILT.each_key { |path| assert_equal "public, max-age=5", server.get(path)["cache-control"], path }
  end

  def test_source_files_never_reach_ruby_in_development
    server = serve(app, environment: "development")
    AssetApp::PLAIN.each do |file, bytes|
      name = file.partition("/").last
      path = digested(server, name)
      answer = server.get(path)
      assert_equal [200, sha(bytes), IMMUTABLE], [answer.status, sha(answer.body), answer["cache-control"]], path
      assert_equal 304, server.get(path, { "If-None-Match" => answer["etag"] }).status, path
      head = server.request("HEAD", path)
      assert_equal ["", bytes.bytesize.to_s], [head.body, head["content-length"]], path
      assert_without_digest(server, name, bytes) if path.match?(/-\h{64}\./) # Propshaft does not know these
    end
    assert_equal "User-agent: *\n", server.get("/robots.txt").body
    assert_equal "built before", server.get("/assets/built.png").body
    assert_empty reached_assets
  end

  # Many clients request them at once; requests for other pages are answered meanwhile.
  def test_large_source_files_never_reach_ruby_either
    server = serve(app, environment: "development")
    AssetApp::LARGE.each do |file, bytes|
      path = digested(server, file.partition("/").last)
      answers = concurrently(4) { server.get(path, within: 30) } << server.get(path)
      answers.each do |answer|
        assert_equal [200, sha(bytes), "no-cache"], [answer.status, sha(answer.body), answer["cache-control"]], path
      end
      assert_equal 304, server.get(path, { "If-None-Match" => answers.last["etag"] }).status, path
      part = server.get(path, { "Range" => "bytes=1000000-1000009" })
      assert_equal [206, bytes[1_000_000, 10]], [part.status, part.body.b]
    end
    assert_empty reached_assets
  end

  def test_two_requests_for_a_large_source_file_in_one_write
    server = serve(app, environment: "development")
    path = digested(server, "large.png")
    request = "GET #{path} HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1\r\n"
    answers = server.exchange("#{request}\r\n#{request}Connection: close\r\n\r\n")
    assert_equal [[206, AssetApp::LARGE["images/large.png"][0, 2]]] * 2,
                 (answers.map { |answer| [answer.status, answer.body.b] })
    assert_empty reached_assets
  end

  def test_a_large_source_file_that_changes_has_another_digest
    server = serve(app, environment: "development")
    path = digested(server, "large.png")
    assert_equal 200, server.get(path).status
    bytes = AssetApp::LARGE["images/large.png"].sub(/./mn, "!")
    File.binwrite(File.join(app, "app/assets/images/large.png"), bytes)
    wait_for("the end of the old digest") { server.get(path).body.b != AssetApp::LARGE["images/large.png"] }
    answer = server.get("/assets/large-#{after_digest(bytes, path)}.png")
    assert_equal [200, sha(bytes)], [answer.status, sha(answer.body)]
  end

  # For every path, with the right digest, a wrong one, or none, the answer is that of Rails.
  def test_answers_are_those_of_rails
    bypassing = serve(app, environment: "development")
    rails = serve(app, "--static-files", "off", environment: "development")
    AssetApp::NAMES.flat_map { |name| requests_for(rails, name) }.uniq.each do |path|
      assert_equal essence(rails.get(path)), essence(bypassing.get(path)), path
    end
  end

  def test_changes_of_source_files_are_seen
    server = serve(app, environment: "development")
    file = File.join(app, "app/assets/images/logo.png")
    before = digested(server, "logo.png")
    assert_equal AssetApp::IMAGE, server.get(before).body
    File.binwrite(file, "another image")
    wait_for("the end of the old digest") { server.get(before).body != AssetApp::IMAGE }
    digest = after_digest("another image", before)
    assert_equal "another image", server.get("/assets/logo-#{digest}.png").body
    File.rename(file, "#{file}.erb")
    wait_for("the file of another folder, or the new one") do
      server.get("/assets/logo-#{digest}.png")["cache-control"] != IMMUTABLE
    end
  end

  def test_they_can_all_be_left_to_rails
    server = serve(app, "--static-files", "off", environment: "development")
    path = digested(server, "logo.png")
    assert_equal AssetApp::IMAGE, server.get(path).body
    assert_equal [path], reached_assets
  end

  private

  def app = @app ||= folder_with(AssetApp::FILES.merge(@built || {}))

  def app_with_built_assets
    css = "public/assets/application-#{SHA}.css"
    @built = BUILT.keys.to_h { |path| ["public#{path}", path] }.merge("#{css}.br" => "brotli", "#{css}.gz" => "zipped")
    app
  end

  def assert_without_digest(server, name, bytes)
    answer = server.get("/assets/#{escape(name)}")
    assert_equal [200, sha(bytes), "no-cache"], [answer.status, sha(answer.body), answer["cache-control"]], name
  end

  def sha(bytes) = Digest::SHA256.hexdigest(bytes)

  # The paths of the requests that have reached Ruby.
  def reached = File.readlines(File.join(app, AssetApp::REACHED), chomp: true)
  def reached_assets = reached - %w[/ /digested]

  def digested(server, name)
    "/assets/#{escape(server.get("/digested?name=#{escape(name)}").body)}"
  end

  def escape(path) = path.b.gsub(%r{[^\w./-]}n) { |byte| format("%%%02X", byte.ord) }

  def requests_for(server, name)
    plain = "/assets/#{escape(name)}"
    path = digested(server, name)
    return [plain] if path == "/assets/"

    [plain, path, "#{path}?body=1", "#{plain}?body=1", path.sub(/-(\h)(\h*)\./, '-f\2.'), "#{path}/",
     plain.sub(/(\.\w+)\z/, '-0123456789abcdef\1'), plain.sub("%2B", "+")]
  end

  # The parts of an answer that clients use. A type that Rails omits may be added; its error page differs each time.
  def essence(answer)
    return answer.status unless answer.status == 200

    type = answer["content-type"]
    [answer.status, sha(answer.body), type == "font/woff2" ? nil : type]
  end

  def after_digest(content, before)
    before.match?(/-\h{8}\./) ? Digest::SHA1.hexdigest("#{content}1")[0, 8] : sha(content)
  end
end
