# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/session_clients"
require_relative "../../support/redis_server"

# Session stores other than Highball's, under several workers: none mixes sessions up or loses one. And what users see
# when the store's server is killed and started again. (sessions_test.rb is about Highball's stores.)
class SessionStoresTest < E2ETest
  include SessionClients

  # Stores that the benchmark compares with.
  COMPARED = File.join(HighballServer::ROOT, "bench/apps/rails/lib/sessions")
  COOKIE = 'config.session_store :cookie_store, key: "_sessions"'
  RUBYS_PSTORE = <<~RUBY.freeze
    require "#{COMPARED}/ruby_pstore"
    config.session_store Sessions::RubyPStore, key: "_sessions", folder: File.expand_path("tmp/sessions", __dir__)
  RUBY
  SQLITE = <<~RUBY.freeze
    require "#{COMPARED}/sqlite_table"
    database = File.expand_path("sessions.sqlite3", __dir__)
    Sessions::SqliteTable.create(database) unless File.exist?(database)
    config.session_store Sessions::SqliteTable, key: "_sessions", database: database
  RUBY
  # Rails' store removes a folder that has become empty, also when another process is about to write into it, and that
  # request fails (ENOENT). This one keeps the folders.
  FILE_CACHE = <<~RUBY
    class CacheInKeptFolders < ActiveSupport::Cache::FileStore
      private def delete_empty_directories(_folder) = nil
    end
    cache = CacheInKeptFolders.new(File.expand_path("tmp/cache", __dir__))
    config.session_store :cache_store, key: "_sessions", cache: cache
  RUBY
  REDIS_CACHE = <<~RUBY
    cache = ActiveSupport::Cache::RedisCacheStore.new(url: ENV.fetch("REDIS_URL"), namespace: "sessions")
    config.session_store :cache_store, key: "_sessions", cache: cache, expire_after: 2.weeks
  RUBY
  REDIS_STORE = <<~RUBY
    require "redis-actionpack"
    config.session_store :redis_store, servers: [ENV.fetch("REDIS_URL") + "/sessions"], key: "_sessions",
                         expire_after: 2.weeks, threadsafe: true
  RUBY

  def teardown
    super
    @redis&.finish
  end

  def test_cookies = assert_sessions_kept_apart(serve_with(COOKIE), ended: false)
  def test_rubys_pstore = assert_sessions_kept_apart(serve_with(RUBYS_PSTORE))
  def test_a_cache_in_files = assert_sessions_kept_apart(serve_with(FILE_CACHE))

  def test_a_table_of_sqlite
    needs_gem "sqlite3"
    assert_sessions_kept_apart(serve_with(SQLITE))
  end

  def test_redis_as_a_cache_store = assert_sessions_kept_apart(serve_with_redis(REDIS_CACHE))

  def test_redis_actionpack
    needs_gem "redis-actionpack"
    assert_sessions_kept_apart(serve_with_redis(REDIS_STORE))
  end

  # Rails takes an unreachable cache for an empty one: meanwhile users are logged out, and each answer replaces their
  # cookie. Only those who sent no request are logged in again afterwards.
  def test_redis_as_a_cache_store_is_killed_and_started_again
    during_outage_of(REDIS_CACHE) do |server, cookie|
      response = visit(server, "/", cookie)
      assert_equal " ", response.body
      refute_equal cookie, cookie_of(response)
    end
  end

  # This one fails the requests, and users are logged in again afterwards.
  def test_redis_actionpack_when_redis_is_killed_and_started_again
    needs_gem "redis-actionpack"
    during_outage_of(REDIS_STORE) do |server, cookie|
      assert_nil visit(server, "/", cookie, status: 500)["set-cookie"]
    end
  end

  private

  def serve_with(store, **settings)
    folder = folder_with("app.rb" => format(RAILS, store))
    serve(folder, workers: 3, threads: 3, **settings)
  end

  def serve_with_redis(store)
    skip "redis-server is not installed: bin/test ruby-packages" unless RedisServer.program
    needs_gem "redis"
    @redis = RedisServer.new
    serve_with(store, env: { "REDIS_URL" => @redis.url })
  end

  # Calls the block for each of several requests while Redis is gone. Then the session is there again, as the Redis has
  # its data on the disk.
  def during_outage_of(store)
    server = serve_with_redis(store)
    cookie = cookie_of(visit(server, "/login?user=ada"))
    @redis.kill
    concurrently(6) { yield server, cookie }
    @redis.start
    assert_equal "ada ", visit(server, "/", cookie).body
    assert_sessions_kept_apart(server)
  end

  def needs_gem(name)
    Gem::Specification.find_by_name(name)
  rescue Gem::MissingSpecError
    skip "the gem #{name} is not installed here"
  end
end
