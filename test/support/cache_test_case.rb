# frozen_string_literal: true

require "json"
require "fileutils"
require_relative "e2e_test"

# A test of the response cache, with an application that counts its requests.
class CacheTestCase < E2ETest
  APP = <<~'RUBY'
    require "json"

    COUNTS = Hash.new(0)
    LOCK = Mutex.new
    VERSION = File.exist?("version") ? File.read("version") : "1"
    PUBLIC = { "content-type" => "text/html", "cache-control" => "public, max-age=600" }.freeze
    SHORT = "public, max-age=1"

    def wait_for(name) = (sleep 0.01 until File.exist?(name))

    def with(control, **more) = PUBLIC.merge("cache-control" => control, **more.transform_keys { _1.name.tr("_", "-") })

    PAGE = Array.new(2000) { |row| "<p>row #{row * 7919 % 1013}</p>\n" }.join
    PLACES = {
      "/" => ->(_, _) { [200, {}, ["up"]] },
      "/public" => ->(_, count) { [200, PUBLIC, ["#{VERSION}: #{count}"]] },
      "/shared" => ->(_, count) { [200, { "cache-control" => "s-maxage=600" }, [count.to_s]] },
      "/plain" => ->(_, count) { [200, { "cache-control" => "max-age=600" }, [count.to_s]] },
      "/private" => ->(_, count) { [200, with("private, max-age=600"), [count.to_s]] },
      "/cookie" => ->(_, count) { [200, with("public, max-age=600", set_cookie: "id=#{count}"), [count.to_s]] },
      "/id" => ->(env, count) { [200, with("public, max-age=600", x_request_id: env["HTTP_X_REQUEST_ID"].to_s), [count.to_s]] },
      "/missing" => ->(_, count) { [404, PUBLIC, [count.to_s]] },
      "/missing-plain" => ->(_, count) { [404, {}, [count.to_s]] },
      "/broken" => ->(_, count) { [500, PUBLIC, [count.to_s]] },
      "/bad" => ->(_, count) { [400, PUBLIC, [count.to_s]] },
      "/moved" => ->(_, count) { [301, PUBLIC.merge("location" => "/public?#{count}"), []] },
      "/none" => ->(_, _) { [204, { "cache-control" => "public, max-age=600" }, []] },
      "/language" => ->(env, count) { [200, with("public, max-age=600", vary: "Accept-Language"), ["#{env['HTTP_ACCEPT_LANGUAGE']} #{count}"]] },
      "/everything" => ->(_, count) { [200, with("public, max-age=600", vary: "*"), [count.to_s]] },
      "/tagged" => lambda do |env, count|
        fields = with(SHORT, etag: '"v1"', x_count: count.to_s)
        env["HTTP_IF_NONE_MATCH"].to_s.include?('"v1"') ? [304, fields, []] : [200, fields, ["tagged #{count}"]]
      end,
      "/dated" => lambda do |env, count|
        fields = with(SHORT, last_modified: "Sun, 06 Nov 1994 08:49:37 GMT")
        env["HTTP_IF_MODIFIED_SINCE"] ? [304, fields, []] : [200, fields, ["dated #{count}"]]
      end,
      "/brief" => ->(_, count) { [200, with(SHORT), [count.to_s]] },
      "/meanwhile" => ->(_, count) { [200, with("#{SHORT}, stale-while-revalidate=600"), [count.to_s]] },
      "/failing" => ->(_, count) { count == 1 ? [200, with("#{SHORT}, stale-if-error=600"), ["fine"]] : [503, {}, ["broken"]] },
      "/raising" => ->(_, count) { count == 1 ? [200, with("#{SHORT}, stale-if-error=600"), ["fine"]] : raise("broken") },
      "/strict" => ->(_, count) { count == 1 ? [200, with("#{SHORT}, must-revalidate, stale-if-error=600"), ["fine"]] : [503, {}, ["broken"]] },
      "/page" => ->(_, count) { [200, PUBLIC.merge("x-count" => count.to_s, "etag" => '"page"'), [PAGE]] },
      "/encoded" => ->(env, _) { [200, with("public, max-age=600", vary: "accept-encoding", content_encoding: env["HTTP_ACCEPT_ENCODING"].to_s), ["x"]] },
      "/slow" => ->(env, count) { wait_for("go") if env["REQUEST_METHOD"] == "GET"; [200, PUBLIC, ["slow #{count}"]] },
      "/slow-private" => ->(_, count) { wait_for("go") if count == 1; wait_for("all") if count > 1; [200, with("private"), [count.to_s]] },
      "/slow-body" => lambda do |_, count|
        body = proc { |out| out.write("head "); out.flush; wait_for("go"); out.write(count.to_s); out.close }
        [200, PUBLIC, body]
      end,
      "/cut" => ->(_, count) { [200, PUBLIC, Enumerator.new { |out| out << "some "; count == 1 ? raise("broken") : out << count.to_s }] },
      "/dying" => ->(_, count) { (wait_for("go"); Process.kill(:KILL, $$)) unless File.exist?("died"); [200, PUBLIC, ["alive"]] },
      "/large" => ->(_, _) { [200, PUBLIC, ["x" * 3_000_000]] },
      "/sized" => ->(env, count) { [200, PUBLIC, [count.to_s.ljust(env["QUERY_STRING"][/\d+/].to_i)]] },
      "/longer" => ->(_, _) { [200, PUBLIC.merge("content-length" => "5"), %w[hel lo, world]] },
      "/longer-than-nothing" => ->(_, _) { [200, PUBLIC.merge("content-length" => "0"), ["hello"]] },
      "/longer-at-once" => ->(_, _) { [200, PUBLIC.merge("content-length" => "5"), ["hello, world"]] },
      "/shorter" => ->(_, _) { [200, PUBLIC.merge("content-length" => "50"), ["hello"]] },
      "/longer-than-chunks" => ->(_, _) { [200, PUBLIC.merge("transfer-encoding" => "chunked"), ["5\r\nhello\r\n0\r\n\r\n", "5\r\nworld"]] },
      "/named-file" => ->(_, count) { [200, PUBLIC.merge("x-accel-redirect" => "/files/#{count}"), []] },
      "/only-test" => ->(env, _) { env["HTTP_HOST"] == "test" ? [200, PUBLIC, ["here"]] : [404, PUBLIC, ["no such site"]] },
      "/file" => ->(_, _) { [200, PUBLIC, File.open("config.ru")] },
      "/echo" => ->(env, count) { [200, PUBLIC, [JSON.generate(echo(env, count))]] },
      "/update" => ->(_, _) { [302, { "location" => "/public" }, []] },
      "/update-elsewhere" => ->(_, _) { [302, { "location" => "http://elsewhere.example/public" }, []] },
      "/refused" => ->(_, _) { [422, { "location" => "/public" }, []] }
    }.freeze

    def echo(env, count)
      names = %w[REQUEST_METHOD HTTP_HOST SERVER_NAME SERVER_PORT rack.url_scheme PATH_INFO QUERY_STRING REQUEST_URI
                 SCRIPT_NAME CONTENT_LENGTH CONTENT_TYPE REMOTE_USER]
      seen = env.slice(*names, *env.keys.grep(/\AHTTP_X_|HTTP_FORWARDED|HTTP_TURBO|HTTP_ORIGIN/))
      seen.merge("count" => count, "body" => env["rack.input"]&.read)
    end

    run lambda { |env|
      path = env["PATH_INFO"]
      next [200, {}, [JSON.generate(COUNTS)]] if path == "/counts"

      count = LOCK.synchronize { COUNTS[path] += 1 }
      PLACES.fetch(path) { ->(_, _) { [200, PUBLIC, [path]] } }.call(env, count)
    }
  RUBY

  private

  def server(*options, cache: "8m", **settings)
    @server ||= serve(folder, "--cache", cache, *options, threads: 8, **settings)
  end

  def folder(files = {}) = folder_with({ "config.ru" => "require 'fileutils'\n#{APP}" }.merge(files))

  def get(target, headers = {}, **options) = server.get(target, headers, **options)

  # How often the application was asked for a path.
  def asked(path) = JSON.parse(server.get("/counts").body).fetch(path, 0)

  # What the cache says about itself, without seconds.
  def says(answer) = answer["cache-status"]&.sub(/ttl=-?\d+/, "ttl=N")

  HIT = "highball; hit; ttl=N"
  STORED = "highball; fwd=uri-miss; stored"
  MISS = "highball; fwd=uri-miss"

  def touch(name) = FileUtils.touch(File.join(server.app, name))

  # The statuses and bodies of these answers.
  def of(*answers) = answers.map { |answer| [answer.status, answer.body] }

  # Waits until what is fresh for a second is stale.
  def wait_until_stale(path)
    wait_for("staleness of #{path}") { get(path, { "Cache-Control" => "only-if-cached" }).status == 504 }
  end
end
