# frozen_string_literal: true

require_relative "e2e_test"

# A test of a server with several applications.
class ManyAppsTestCase < E2ETest
  # Answers with its name, the path of the request, and its environment.
  ECHO = <<~'RUBY'
    require "json"
    run lambda { |env|
      sleep(env["QUERY_STRING"][/slow=([\d.]+)/, 1].to_f)
      loop {} if env["PATH_INFO"] == "/for-ever"
      facts = env.values_at("SCRIPT_NAME", "PATH_INFO").push(Process.pid, ENV["SECRET"], ENV["RACK_ENV"])
      [200, { "content-type" => "application/json" }, [JSON.generate(["%s", *facts])]]
    }
  RUBY
  RAISING = <<~RUBY
    run lambda { |env|
      Process.kill("KILL", Process.pid) if env["PATH_INFO"] == "/die"
      sleep if env["PATH_INFO"] == "/die"
      raise "alas"
    }
  RUBY
  BROKEN = "raise \"no luck\"\n"

  private

  def echo(name) = ECHO.sub("%s", name)

  # Two applications, both of which serve: [server, folder].
  def serve_two(files = {})
    folder = folder_with({ "bad/config.ru" => echo("bad"), "good/config.ru" => echo("good"),
                           "highball.toml" => entries("bad" => "", "good" => "") }.merge(files))
    [serve_many(folder), folder]
  end

  def serve_entries(applications, files, environment = "production")
    serve_many(folder_with(files.merge("highball.toml" => entries(applications))), environment: environment)
  end

  # The first of them is the application by which the server is known.
  # `through` is what starts the binary.
  def serve_many(*places, **settings)
    server = start_many(*places, **settings)
    wait_for("the server", within: HighballServer::SERVES_WITHIN) do
      has_link = settings[:environment] != "development" || server.link_key
      (server.log.match?(/serving on|"message":"serving"|fix it, then reload/) && has_link) || !server.running?
    end
    server
  end

  # The same without waiting.
  # `fds` are descriptors that it inherits: {7 => io}.
  def start_many(*places, environment: "production", through: [], env: {}, fds: {})
    options = ["-b", "127.0.0.1", "-p", "0", "-w", "1", *(["-e", environment] if environment)]
    command = [*through, HighballServer::BINARY, "serve", *options, *places]
    HighballServer.new(places.first, command: command, env: env, fds: fds).tap { |server| @servers << server }
  end

  def entries(applications)
    applications.map { |name, more| "[[app]]\npath = '#{name}'\n#{more}\n" }.join
  end

  def configure(server, folder, applications, top = "")
    File.write(File.join(folder, "highball.toml"), "#{top}\n#{entries(applications)}")
    server.signal("HUP")
  end

  # The application's answer to a request; it may have to boot first.
  def ask(server, host, path, within: HighballServer::SERVES_WITHIN)
    answer = server.get(path, { "Host" => host }, within: within)
    assert_equal 200, answer.status, answer.body
    JSON.parse(answer.body)
  end

  def assert_links_stay_below(prefix, server)
    page = server.get("#{prefix}/", { "Host" => "localhost" }, within: 60)
    assert_equal 200, page.status, page.body
    links = page.body.scan(%r{(?:href|src|action)="(/[^"]*)"}).flatten.uniq
    refute_empty links
    assert_empty(links.reject { |link| link.start_with?(prefix) })
    links.each do |link|
      assert_includes [200, 302, 405, 404], server.get(link, { "Host" => "localhost" }, within: 30).status, link
    end
  end

  # This number of clients sends requests to each of these applications while the block runs; none may fail.
  def during_requests(server, *hosts, clients: 4)
    done = false
    clients = (hosts * clients).map do |host|
      Thread.new do
        assert_equal host, ask(server, host, "/").first until done
      end
    end
    clients.each { |client| client.report_on_exception = false }
    yield
  ensure
    done = true
    clients.each(&:value)
  end

  def app(server, name) = server.full_status["apps"].find { |app| app["name"] == name }
  def phases(server) = server.full_status["apps"].map { |app| app["phase"] }
  def generations(server) = server.full_status["apps"].map { |app| app["generation"] }

  def pids(server)
    server.full_status["apps"].to_h do |app|
      [app["name"], [app.dig("mold", "pid"), *app["workers"].map { |worker| worker["pid"] }]]
    end
  end
end
