# frozen_string_literal: true

require_relative "../../support/http2_test_case"
require_relative "../../support/admin"

# `highball maintenance`: a page for visitors instead of the application.
class MaintenanceTest < Http2TestCase
  include Admin

  parallelize_me!

  APP = <<~'RUBY'
    GO = File.join(__dir__, "go")
    run lambda { |env|
      sleep 0.01 until env["PATH_INFO"] != "/wait" || File.exist?(GO)
      [200, {}, ["from the app: #{env['PATH_INFO']}"]]
    }
  RUBY
  FILE = "tmp/maintenance.json"
  LINK = /highball-maintenance=\h{32}/

  def test_visitors_get_a_page_until_it_is_off
    server = serve_app("public/a.txt" => "a")
    assert_equal 200, server.get("/a.txt").status
    output = switch(server, "on", "--message", "Back <at> noon", "--retry-after", "30m")
    assert_includes output, "visitors get 503 from now on"
    %w[/ /a.txt].each do |path|
      response = server.get(path)
      assert_equal [503, "1800", "no-store"], [response.status, response["retry-after"], response["cache-control"]]
      assert_includes response.body, "<p>Back &lt;at&gt; noon</p>"
      assert_includes response.body, %(Please try again in <time datetime="PT1800S">30 minutes</time>.)
    end
    assert_equal [503, ""], answer(server.request("HEAD", "/"))
    assert_equal 503, server.request("POST", "/", {}, "x").status
    assert_match(/maintenance +visitors get 503 \(Back <at> noon\)/, command_output(server, "status"))
    assert_includes command_output(server, "top", "--once"), "maintenance: visitors get 503"
    assert_includes server.log, "maintenance is on: visitors get 503"
    switch(server, "off")
    assert_equal "from the app: /", server.get("/").body
    assert_equal "a", server.get("/a.txt").body
    refute_match(/^maintenance/, command_output(server, "status"))
  end

  def test_http2
    server = serve_app({}, *CLEARTEXT)
    switch(server, "on")
    http2(server) { |connection| assert_equal 503, connection.ask(1, "GET", "/").status }
    switch(server, "off")
    http2(server) { |connection| assert_equal 200, connection.ask(1, "GET", "/").status }
  end

  def test_the_applications_own_page_is_shown
    server = serve_app("public/503.html" => "full")
    switch(server, "on")
    assert_equal [503, "full"], answer(server.get("/"))
    File.write(File.join(server.app, "public/maintenance.html"), "own page")
    wait_for("the other page") { server.get("/").body == "own page" }
  end

  def test_a_link_lets_a_browser_pass
    server = serve_app
    link = switch(server, "on")[LINK]
    welcome = server.get("/a?b=c&#{link}&d")
    assert_equal [303, "/a?b=c&d"], [welcome.status, welcome["location"]]
    assert_equal "#{link}; Path=/; HttpOnly; SameSite=Lax", welcome["set-cookie"]
    assert_equal 200, server.get("/a", { "Cookie" => "x=y; #{link}" }).status
    switch(server, "on")
    assert_equal 503, server.get("/", { "Cookie" => link }).status, "the next link is another one"
  end

  def test_a_wrong_key_does_not_help
    server = serve_app
    name, key = switch(server, "on")[LINK].split("=")
    ["#{name}=#{key.tr('0-9', '1-90')}", "#{name}=#{key.chop}", "#{name}=#{key}0", "#{name}=", name].each do |text|
      assert_equal 503, server.get("/", { "Cookie" => text }).status, text
      assert_equal 503, server.get("/?#{text}").status, text
    end
  end

  def test_the_key_is_in_no_log_and_no_report_and_leads_nowhere_else
    log = File.join(folder_with, "access.log")
    server = serve_app({}, "--access-log", log)
    link = switch(server, "on")[LINK]
    assert_equal "/evil.example/", server.get("//evil.example/?#{link}")["location"]
    wait_for("the log") { File.read(log).include?(" 303 ") }
    [File.read(log), server.log, command_output(server, "status", "--json")].each do |text|
      refute_includes text, link.split("=").last
    end
  end

  def test_addresses_pass
    server = serve_app({}, "--trusted-proxies", "loopback")
    switch(server, "on", "--allow", "203.0.113.0/24", "--allow", "2001:db8::/32")
    { "203.0.113.9" => 200, "2001:db8::1" => 200, "198.51.100.1" => 503 }.each do |client, status|
      assert_equal status, server.get("/", { "X-Forwarded-For" => client }).status, client
    end
  end

  def test_health_checks_go_on
    server = serve_app({}, "--probe-path", "/up")
    switch(server, "on")
    assert_equal "ready\n", server.get("/ready").body
    assert_equal "from the app: /up", server.get("/up").body
    assert_equal 503, server.request("POST", "/up", {}, "x").status
  end

  def test_running_requests_and_restarts_go_on
    server = serve_app
    server.connect do |client|
      client.send_request("GET", "/wait")
      wait_for("the request") { command_output(server, "top", "--once").include?("/wait") }
      switch(server, "on")
      FileUtils.touch(File.join(server.app, "go"))
      assert_equal "from the app: /wait", client.read_response.body
    end
    highball("restart", *server.which, within: 60)
    assert_equal 503, server.get("/").status
  end

  def test_it_stays_over_a_restart_of_the_server
    folder = folder_with("config.ru" => APP, FILE => "")
    server = serve(folder, "--health-path", "/up", ready: "/up")
    assert_equal 503, server.get("/").status
    highball("upgrade", *server.which, within: 60)
    assert_equal 503, server.get("/").status
    FileUtils.rm(File.join(folder, FILE))
    wait_for("the end of the maintenance") { server.get("/").status == 200 }
  end

  def test_each_application_is_switched_alone
    blog, shop = Array.new(2) { folder_with("config.ru" => APP) }
    File.write(File.join(blog, "highball.toml"), <<~TOML)
      bind = "127.0.0.1:0"
      environment = "production"
      [[app]]
      name = "blog"
      path = "#{blog}"
      prefix = "/blog"
      [[app]]
      name = "shop"
      path = "#{shop}"
      prefix = "/shop"
      maintenance_file = "#{shop}/maintenance.shop.json"
    TOML
    command = [HighballServer::BINARY, "serve", "--config", File.join(blog, "highball.toml")]
    server = serve(blog, command: command, ready: "/shop/")
    highball("maintenance", "on", "shop", "--port", server.port.to_s)
    assert_equal [200, 503], [server.get("/blog/").status, server.get("/shop/").status]
    assert_path_exists File.join(shop, "maintenance.shop.json")
    highball("maintenance", "off", "--port", server.port.to_s)
    assert_equal [200, 200], [server.get("/blog/").status, server.get("/shop/").status]
  end

  def test_metrics
    server = serve_app({}, *admin)
    assert_match(/^highball_app_maintenance\{.*\} 0$/, ask_admin("/metrics").body)
    switch(server, "on")
    assert_match(/^highball_app_maintenance\{.*\} 1$/, ask_admin("/metrics").body)
  end

  # --- attacks and mistakes

  # A malformed file is no reason to let visitors in.
  def test_a_malformed_file_keeps_visitors_out
    ["down", "{\"key\": \"short\"}", "[1]", "x" * 20_000].each do |text|
      server = serve_app(FILE => text)
      assert_equal 503, server.get("/").status, text[0, 20]
      assert_match(/maintenance is on, and its file is malformed/, server.log)
      assert_match(/remove it yourself|cannot/, highball_fails("maintenance", "off", *server.which))
    end
  end

  # A named pipe, and a link to one, would keep a process waiting that opens it.
  def test_what_is_no_file_keeps_visitors_out_and_nobody_waiting
    server = serve_app
    FileUtils.mkdir_p(File.join(server.app, "tmp"))
    File.mkfifo(File.join(server.app, FILE))
    wait_for("the maintenance") { server.get("/").status == 503 }
    FileUtils.rm(File.join(server.app, FILE))
    wait_for("its end") { server.get("/").status == 200 }
  end

  def test_an_empty_key_is_no_key
    server = serve_app(FILE => "{}")
    assert_equal 503, server.get("/?highball-maintenance=").status
    assert_equal 503, server.get("/", { "Cookie" => "highball-maintenance=" }).status
  end

  def test_wrong_arguments_are_refused
    server = serve_app
    [%w[maintenance], %w[maintenance maybe], %w[maintenance on --allow everybody],
     %w[maintenance on --retry-after 0]].each { |command| highball_fails(*command, *server.which) }
    output = highball_fails("serve", "--maintenance-file", "/etc/passwd", server.app)
    assert_match(/whose name begins with maintenance/, output)
  end

  private

  def serve_app(files = {}, *options)
    folder = folder_with({ "config.ru" => APP }.merge(files))
    serve(folder, "--health-path", "/ready", *options, ready: "/ready")
  end

  def answer(response) = [response.status, response.body]

  def switch(server, *arguments) = command_output(server, "maintenance", *arguments)
end
