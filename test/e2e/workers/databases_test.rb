# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/postgres_server"

# Workers whose number of threads grows, of an application with Active Record. Its pool is as large as Rails'
# config/database.yml makes it. A request fails if it gets no connection within half a second (Rails: five). In each
# Ruby it is a large application, by its number of objects.
class DatabasesTest < E2ETest
  APP = <<~'RUBY'
    require "active_record"
    OBJECTS = Array.new(100_000) { Object.new }
    pool = ENV.fetch("RAILS_MAX_THREADS", 5).to_i
    if ENV.key?("DATABASE_URL")
      ActiveRecord::Base.establish_connection(url: ENV["DATABASE_URL"], pool: pool, checkout_timeout: 0.5)
    else
      ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: "#{__dir__}/data.sqlite3", pool: pool,
                                              checkout_timeout: 0.5, timeout: 30_000)
    end
    ActiveRecord::Base.connection_pool.with_connection do |connection|
      connection.execute("create table if not exists counts (number integer)")
      connection.execute("insert into counts values (0)")
    end
    change = lambda do |connection|
      connection.transaction do
        connection.execute("update counts set number = number + 1")
        connection.execute("select pg_sleep(0.01)")
      end
    end
    run(lambda do |env|
      text = ActiveRecord::Base.connection_pool.with_connection do |connection|
        case env["PATH_INFO"]
        when "/wait" then connection.select_value("select 'waited' from pg_sleep(0.3)")
        when "/service" then sleep(0.3) || "never"
        when "/change" then change.call(connection) && "changed"
        else connection.select_value("select number from counts")
        end
      end
      [200, { "content-type" => "text/plain" }, [text.to_s]]
    end)
  RUBY

  def test_postgresql
    with_postgresql do |env|
      server = serve_app("3..32", env)
      most = most_threads(server) { ask(server, "/wait", 240) }
      assert_operator most, :>, 12
      ask(server, "/change", 100)
      assert_equal "100", server.get("/").body
    end
  end

  def test_sqlite
    server = serve_app("3..32")
    most = most_threads(server) { ask(server, "/service", 240) }
    assert_operator most, :>, 12
  end

  def test_a_smaller_pool_has_as_few_time_outs_as_with_a_fixed_number_of_threads
    with_postgresql do |env|
      %w[5 5..32].each do |threads|
        server = serve_app(threads, env.merge("RAILS_MAX_THREADS" => "7"))
        most = most_threads(server) { ask(server, "/wait", 60) }
        assert_equal 5, most
      end
    end
  end

  private

  def with_postgresql
    skip "no PostgreSQL is installed" unless PostgresServer.programs
    database = PostgresServer.new
    yield({ "DATABASE_URL" => database.url })
  ensure
    @server&.stop
    database&.finish
  end

  def serve_app(threads, env = {})
    folder = folder_with("config.ru" => APP)
    command = [HighballServer::BINARY, "serve", "-b", "127.0.0.1", "-p", "0", "-e", "production", "-w", "1",
               "-t", threads, folder]
    @server = serve(folder, command: command, env: env, complete: true)
  end

  # All at once. Each must be answered.
  def ask(server, path, count)
    concurrently(count) do
      response = server.request("GET", path, within: 120)
      assert_equal 200, response.status, server.log
    end
  end

  # The largest number of threads of the worker meanwhile.
  def most_threads(server)
    most = 0
    ended = false
    looking = Thread.new do
      most = [most, server.status["workers"].first["threads"]].max until ended
    end
    yield
    most
  ensure
    ended = true
    looking&.join
  end
end
