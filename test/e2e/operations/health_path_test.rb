# frozen_string_literal: true

require_relative "../../support/e2e_test"

# `health_path`: health checks at the addresses for clients, which the front answers without a worker.
class HealthPathTest < E2ETest
  parallelize_me!

  APP = <<~'RUBY'
    GO = File.join(__dir__, "go")
    run lambda { |env|
      sleep 0.02 until env["PATH_INFO"] != "/wait" || File.exist?(GO)
      [200, {}, ["from the app: #{env['PATH_INFO']}"]]
    }
  RUBY

  def test_the_front_answers_also_while_the_application_is_stuck
    folder = folder_with("config.ru" => APP)
    server = serve(folder, "--health-path", "/up", "--stuck-after", "500ms", threads: 1)
    assert_equal [200, "ready\n", "no-store"], answer(server.get("/up?any"))
    assert_equal [200, ""], answer(server.request("HEAD", "/up")).first(2)
    clients = Array.new(2) { server.connect.tap { |client| client.send_request("GET", "/wait") } }
    wait_for("the app to be stuck") { server.get("/up").status == 503 }
    assert_equal [503, "not ready: stuck\n", "no-store"], answer(server.get("/up"))
    FileUtils.touch(File.join(folder, "go"))
    clients.each { |client| assert_equal 200, client.read_response.status }
    wait_for("readiness") { server.get("/up").status == 200 }
  ensure
    clients&.each(&:close)
  end

  def test_everything_else_is_the_applications
    server = serve(folder_with("config.ru" => APP), "--health-path", "/up")
    assert_equal "from the app: /up", server.request("POST", "/up", {}, "x").body
    %w[/upper /up/ /u /UP].each { |path| assert_equal "from the app: #{path}", server.get(path).body }
    assert_equal "from the app: /up", serve(folder_with("config.ru" => APP)).get("/up").body
  end

  def test_a_server_that_stops_soon_is_not_ready
    server = serve(folder_with("config.ru" => APP), "--health-path", "/up", "--drain-grace", "5s")
    Process.kill("TERM", server.pid)
    wait_for("the grace") { server.get("/up").status == 503 }
    assert_equal "not ready: stopping\n", server.get("/up").body
    assert_equal 200, server.get("/").status
  end

  # Each application for itself: by its host, and below its prefix.
  def test_of_several_applications
    blog, shop, bad = Array.new(3) { |number| folder_with("config.ru" => number == 2 ? "raise 'no'" : APP) }
    configuration = <<~TOML
      bind = "127.0.0.1:0"
      environment = "production"
      health_path = "/up"
      [[app]]
      path = "#{blog}"
      hosts = ["blog.test"]
      [[app]]
      path = "#{shop}"
      prefix = "/shop"
      health_path = "/health"
      [[app]]
      path = "#{bad}"
      hosts = ["bad.test"]
    TOML
    file = File.join(folder_with("highball.toml" => configuration), "highball.toml")
    server = serve(blog, command: [HighballServer::BINARY, "serve", "--config", file], ready: "/shop/health")
    wait_for("the failed boot") { server.get("/up", { "Host" => "bad.test" }).body == "not ready: failed\n" }
    assert_equal "ready\n", server.get("/up", { "Host" => "blog.test" }).body
    assert_equal "ready\n", server.get("/shop/health").body
    assert_equal "from the app: /up", server.get("/shop/up").body
    assert_equal 404, server.get("/up", { "Host" => "other.test" }).status
  end

  private

  def answer(response) = [response.status, response.body, response["cache-control"]]
end
