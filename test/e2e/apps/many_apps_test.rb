# frozen_string_literal: true

# marks: long, root

require_relative "../../support/many_apps_test_case"

# Several applications on one server.
class ManyAppsTest < ManyAppsTestCase
  def test_folders_are_reached_by_their_names_and_boot_at_the_first_request
    folder = folder_with("Blog/config.ru" => echo("blog"), "shop/config.ru" => echo("shop"),
                         "site/index.html" => "a site")
    server = serve_many(*%w[Blog shop site].map { |name| File.join(folder, name) }, environment: "development")
    wait_for("the site") { phases(server) == %w[asleep asleep serving] }
    assert_equal ["blog", "", "/a"], ask(server, "blog.localhost", "/a").first(3)
    assert_equal "shop", ask(server, "SHOP:80", "/").first
    assert_equal "a site", server.get("/", { "Host" => "site" }).body
    assert_equal 404, server.get("/", { "Host" => "wiki.localhost" }).status
    wait_for("both to serve") { phases(server) == %w[serving serving serving] }
  end

  def test_a_health_check_needs_all_applications_to_serve
    folder = folder_with("blog/config.ru" => echo("blog"), "shop/config.ru" => "raise 'out of order'")
    server = serve_many(*%w[blog shop].map { |name| File.join(folder, name) }, "--prestart", "on")
    wait_for("both") { phases(server) == %w[serving failed] }
    output, ended = HighballServer.run("status", "--check", "--port", server.port.to_s)
    assert_equal 1, ended.exitstatus
    assert_match(/^highball: not serving: shop is failed$/, output)
    { "blog" => 0, "shop" => 1 }.each do |name, code|
      assert_equal code, HighballServer.run("status", "--check", "--port", server.port.to_s, name).last.exitstatus, name
    end
  end

  def test_below_a_prefix
    server = serve_entries({ "echo" => "prefix = '/e/cho'", "main" => "hosts = ['*']" },
                           "echo/config.ru" => echo("echo"), "echo/public/file.txt" => "a file",
                           "main/config.ru" => echo("main"))
    assert_equal ["echo", "/e/cho", "/a/b"], ask(server, "any", "/e/cho/a/b").first(3)
    assert_equal ["echo", "/e/cho", ""], ask(server, "any", "/e/cho").first(3)
    assert_equal ["main", "", "/e/chord"], ask(server, "any", "/e/chord").first(3)
    assert_equal "a file", server.get("/e/cho/file.txt", { "Host" => "any" }).body
  end

  def test_sinatra_and_rails_below_a_prefix
    folder = folder_with
    %w[sinatra blog].each { |name| FileUtils.cp_r(copy_of_example(name), File.join(folder, name)) }
    applications = { "sinatra" => "prefix = '/guests'", "blog" => "prefix = '/my/blog'" }
    File.write(File.join(folder, "highball.toml"), entries(applications))
    server = serve_many(folder, environment: "development")
    ["/my/blog", "/guests"].each { |prefix| assert_links_stay_below(prefix, server) }
    headers = { "Host" => "localhost", "Content-Type" => "application/x-www-form-urlencoded" }
    answer = server.request("POST", "/guests/entries", headers, "text=a", within: 60)
    assert_equal 303, answer.status, answer.body
    assert_match(%r{\Ahttp://localhost(:\d+)?/guests/\z}, answer["location"])
    new_post = server.get("/my/blog/posts/new", { "Host" => "localhost" }).body
    assert_match(%r{action="/my/blog/posts"}, new_post)
  end

  def test_one_that_fails_to_boot_leaves_the_others_alone_until_it_is_fixed
    server, folder = serve_two("bad/config.ru" => BROKEN)
    wait_for("the failure") { phases(server) == %w[failed serving] }
    bad = app(server, "bad")
    assert_equal "exception", bad.dig("diagnosis", "cause")
    assert_includes bad["last_failure"], "no luck"
    assert_match(/ERROR bad: the application did not boot/, server.log)
    assert_equal 503, server.get("/", { "Host" => "bad" }).status
    assert_equal "good", ask(server, "good", "/").first
    highball_fails("restart", "bad", *server.which)
    File.write(File.join(folder, "bad/config.ru"), echo("bad"))
    wait_for("it to be noticed", within: 30) { app(server, "bad")["phase"] == "serving" }
    assert_equal "bad", ask(server, "bad", "/").first
  end

  def test_one_whose_workers_always_die_leaves_the_others_alone
    server, = serve_two("bad/config/highball.rb" => "Highball.after_fork { exit!(1) }\n")
    wait_for("it to be given up", within: 30) { app(server, "bad")["phase"] == "failed" }
    assert_equal "good", ask(server, "good", "/").first
  end

  def test_errors_while_running_name_the_application
    pages = %w[bad good].to_h { |name| ["#{name}/public/500.html", "#{name} is sorry"] }
    server, = serve_two("bad/config.ru" => RAISING, "good/config.ru" => RAISING, **pages)
    %w[bad good].each do |name|
      answer = server.get("/", { "Host" => name })
      assert_equal [500, "#{name} is sorry"], [answer.status, answer.body]
    end
    assert_equal 502, server.get("/die", { "Host" => "bad" }).status
    assert_match(/ERROR bad: .*the client gets 502/, server.log)
  end

  def test_developers_see_an_exception_below_a_prefix
    server = serve_entries({ "bad" => "prefix = '/b'", "good" => "hosts = ['*']" },
                           { "bad/config.ru" => RAISING, "good/config.ru" => echo("good") }, "development")
    answer = server.get("/b/x?q=z", { "Host" => "localhost" }, within: HighballServer::SERVES_WITHIN)
    assert_equal 500, answer.status
    ["GET /b/x?q=z failed", "alas", "bad/config.ru:4"].each { |words| assert_includes answer.body, words }
  end

  def test_one_that_loops_for_ever_holds_only_its_own_requests_up
    long
    server, = serve_two("highball.toml" => "drain_timeout = '1s'\n#{entries('bad' => '', 'good' => '')}")
    hanging = Array.new(8) { server.connect.tap { |one| one.send_request("GET", "/for-ever", { "Host" => "bad" }) } }
    wait_for("its threads to be busy") { app(server, "bad")["queue"] == 5 }
    assert_equal "good", ask(server, "good", "/").first
    assert_equal 0, app(server, "good")["queue"]
    hanging.each(&:close)
  ensure
    server && app(server, "bad")["workers"].each { |worker| HighballServer.kill(worker["pid"]) }
  end

  def test_a_restart_of_one_and_of_all
    server, = serve_two
    before = pids(server)
    highball("restart", "good", *server.which)
    assert_equal [1, 2], generations(server)
    assert_equal before["bad"], pids(server)["bad"]
    output = highball("restart", *server.which)
    assert_match(/^bad:$.*^good:$/m, output)
    assert_equal [2, 3], generations(server)
    server.signal("USR1")
    wait_for("both to be restarted", within: 30) { generations(server) == [3, 4] }
  end

  def test_what_commands_do_with_several
    server, = serve_two
    plain, = HighballServer.run("status", *server.which)
    assert_match(%r{^  bad +serving .* bad.localhost:#{server.port}/$}, plain)
    assert_match(/^  good +serving +\d/, plain)
    only, = HighballServer.run("status", "good", *server.which)
    assert_match(%r{^good +serving at http://good.localhost:#{server.port}/$}, only)
    refute_match(/^ *bad /, only)
    memory, = Open3.capture2(HighballServer::ENVIRONMENT, HighballServer::BINARY, "memory", "--json", *server.which)
    processes = JSON.parse(memory)["highball"].first["processes"]
    of_apps = processes.reject { |process| server.own_pids.include?(process["pid"]) }
    assert_equal(%w[bad bad good good], of_apps.map { |process| process["app"] })
    %w[stop upgrade].each do |command|
      output = highball_fails(command, "good", *server.which)
      assert_includes output, "one of 2 applications of the server with pid #{server.pid}"
    end
  end

  def test_hup_adds_changes_and_removes_and_nothing_else_notices
    server, folder = serve_two("new/config.ru" => echo("new"))
    before = pids(server)
    during_requests(server, "good") do
      configure(server, folder, { "bad" => "threads = 2", "good" => "", "new" => "hosts = ['new.example.org']" })
      wait_for("the change", within: 30) { generations(server) == [2, 1, 1] && phases(server).uniq == ["serving"] }
      assert_equal "new", ask(server, "new.example.org", "/").first
      assert_equal 2, app(server, "bad")["workers"].first["threads"]
      configure(server, folder, { "good" => "", "new" => "hosts = ['other.example.org']" })
      wait_for("the removal", within: 30) { server.full_status["apps"].map { |app| app["name"] } == %w[good new] }
      assert_equal 404, server.get("/", { "Host" => "bad" }).status
      wait_for("the other host") { server.get("/", { "Host" => "other.example.org" }).status == 200 }
    end
    assert_equal before["good"], pids(server)["good"]
    assert_equal 1, app(server, "new")["generation"], "a host is no reason for a restart"
  end

  def test_hup_changes_how_files_are_served
    server, folder = serve_two("bad/public/file.txt" => "a file")
    assert_equal "a file", server.get("/file.txt", { "Host" => "bad" }).body
    configure(server, folder, { "bad" => "static_files = false", "good" => "" })
    wait_for("the change", within: 30) { server.get("/file.txt", { "Host" => "bad" }).body != "a file" }
    assert_equal ["bad", "", "/file.txt"], ask(server, "bad", "/file.txt").first(3)
  end

  def test_hup_leaves_one_alone_whose_link_leads_elsewhere
    server, folder = serve_two("one/config.ru" => echo("one"), "two/config.ru" => echo("two"))
    link = File.join(folder, "current")
    File.symlink("one", link)
    linked = { "current" => "name = 'linked'", "good" => "" }
    configure(server, folder, linked)
    wait_for("the link's") { app(server, "linked")&.fetch("phase") == "serving" }
    File.unlink(link)
    File.symlink("two", link)
    configure(server, folder, linked.merge("good" => "hosts = ['other']"))
    wait_for("the other host") { server.get("/", { "Host" => "other" }).status == 200 }
    assert_empty app(server, "linked")["restarts"]
    assert_equal "one", ask(server, "linked", "/").first
  end

  def test_hup_fixes_one_that_hangs_while_it_boots
    hangs = "sleep if ENV['HANG']\n"
    server, folder = serve_two("new/config.ru" => "#{hangs}#{echo('new')}")
    configure(server, folder, { "bad" => "", "good" => "", "new" => "variables = { HANG = 'yes' }" })
    wait_for("the new one") { app(server, "new")&.dig("mold", "pid") }
    configure(server, folder, { "bad" => "", "good" => "", "new" => "" })
    assert_equal "new", ask(server, "new", "/").first
  end

  def test_a_removed_application_finishes_its_requests
    server, folder = serve_two("new/config.ru" => echo("new"))
    server.connect do |connection|
      connection.send_request("GET", "/?slow=1.5", { "Host" => "bad" })
      wait_for("the request") { app(server, "bad")["workers"].first["in_flight"] == 1 }
      configure(server, folder, { "good" => "", "new" => "" })
      wait_for("the removal") { server.get("/", { "Host" => "bad" }).status == 404 }
      assert_equal "bad", JSON.parse(connection.read_response.body).first
    end
    wait_for("its end") { server.full_status["apps"].map { |app| app["name"] } == %w[good new] }
  end

  def test_an_invalid_configuration_changes_nothing_and_is_explained
    server, folder = serve_two
    before = pids(server)
    configure(server, folder, { "good" => "threds = 1" })
    wait_for("the complaint") { server.log.include?("did you mean `threads`?") }
    assert_equal before, pids(server)
    configure(server, folder, { "bad" => "", "good" => "" }, "max_connections = 7")
    wait_for("the hint") { server.log.include?("with a hot restart: highball upgrade") }
    assert_equal before, pids(server)
  end

  def test_an_idle_one_falls_asleep_and_wakes_up
    server = serve_entries({ "good" => "", "tired" => "sleep_after = '300ms'" },
                           "good/config.ru" => echo("good"), "tired/config.ru" => echo("tired"))
    first = ask(server, "tired", "/")[3]
    wait_for("sleep") { app(server, "tired")["phase"] == "asleep" && !ProcessFacts.alive?(first) }
    assert_equal [nil, []], app(server, "tired").values_at("mold", "workers")
    concurrently(4) { assert_equal "tired", ask(server, "tired", "/").first }
    assert_equal "good", ask(server, "good", "/").first
    wait_for("sleep again", within: 20) { app(server, "tired")["phase"] == "asleep" }
    highball("restart", *server.which)
  end

  def test_variables_are_an_applications_own
    server = serve_entries({ "bad" => "variables = { SECRET = 'x y' }", "good" => "environment = 'staging'" },
                           { "bad/config.ru" => echo("bad"), "good/config.ru" => echo("good") }, nil)
    assert_equal ["x y", "development"], ask(server, "bad", "/").last(2)
    assert_equal [nil, "staging"], ask(server, "good", "/").last(2)
  end

  def test_term_answers_what_is_in_flight_everywhere
    server, = serve_two
    connections = %w[bad good].map do |host|
      server.connect.tap { |one| one.send_request("GET", "/?slow=1", { "Host" => host }) }
    end
    wait_for("the requests") { server.full_status["apps"].all? { |app| app["workers"].first["in_flight"] == 1 } }
    server.signal("TERM")
    assert_equal(%w[bad good], connections.map { |one| JSON.parse(one.read_response.body).first })
    assert_predicate server.wait, :success?
    assert_empty server.orphans
  end

  def test_a_highball_that_is_killed_leaves_nothing
    server, = serve_two
    server.signal("KILL")
    server.wait
    assert_empty server.orphans
  end

  def test_a_hot_restart_takes_all_with_it
    server, folder = serve_two("broken/config.ru" => BROKEN)
    configure(server, folder, { "bad" => "", "good" => "", "broken" => "" })
    wait_for("the third") { app(server, "broken")&.fetch("phase") == "failed" }
    during_requests(server, "good") do
      highball("upgrade", *server.which, within: 60)
    end
    refute_equal server.pid, server.full_status["pid"]
    assert_equal "bad", ask(server, "bad", "/").first
    wait_for("the third to fail again", within: 30) { phases(server) == %w[serving serving failed] }
    File.write(File.join(folder, "good/config.ru"), BROKEN)
    output, ended = HighballServer.run("upgrade", *server.which, within: 60)
    refute_predicate ended, :success?, "it would lose an application that serves:\n#{output}"
    assert_equal "good", ask(server, "good", "/").first
  end
end
