# frozen_string_literal: true

require "cgi"
require_relative "../../support/broken_app"

# An application that does not boot in development: the page in the browser, and the way back.
class BrokenPagesTest < BrokenAppTest
  BROKEN = "class Broken\n  def call(env\nend\n"

  def test_a_fixed_application_runs_after_a_reload
    app = folder_with("config.ru" => "require_relative 'app'\n#{WELL}", "app.rb" => BROKEN)
    server = serve_broken(app)
    assert_equal 503, server.get("/", HTML).status
    File.write(File.join(app, "app.rb"), "class Broken\nend\n")
    answer = server.get("/", HTML)
    assert_equal [200, "it runs"], [answer.status, answer.body]
    assert_equal "serving", server.status["phase"]
  end

  def test_another_mistake_brings_another_page
    app = folder_with("config.ru" => BROKEN)
    server = serve_broken(app)
    before = server.get("/", HTML)
    File.write(File.join(app, "config.ru"), "run Missing.new\n")
    after = server.get("/", HTML)
    assert_includes after.body, "uninitialized constant"
    refute_equal before["highball-diagnosis"], after["highball-diagnosis"]
    assert_equal after["highball-diagnosis"], server.request("HEAD", "/", HTML)["highball-diagnosis"]
  end

  # The cause may be outside of the folder.
  def test_without_a_change_it_boots_again_after_some_seconds
    elsewhere = File.join(folder_with, "there.rb")
    server = serve_broken(folder_with("config.ru" => "require '#{elsewhere}'\n#{WELL}"))
    File.write(elsewhere, "")
    wait_for("the app", within: 30) { server.get("/", HTML).status == 200 }
  end

  def test_programs_get_text
    answer = serve_broken(folder_with("config.ru" => BROKEN)).get("/", { "Host" => "localhost" })
    assert_match %r{\Atext/plain}, answer["content-type"]
    assert_match(/syntax_error.*config\.ru:\d.*What to do/m, answer.body)
  end

  def test_only_developers_see_the_error
    server = serve_broken(folder_with("config.ru" => "raise 'between us'\n"))
    assert_includes server.get("/", HTML).body, "between us"
    [{ "Host" => "evil.example" }, { "Host" => "evil.example:#{server.port}" }, { "X-Forwarded-For" => "192.0.2.1" },
     { "Forwarded" => "for=192.0.2.1" }, { "Via" => "1.1 tunnel" }].each do |fields|
      answer = server.get("/", HTML.merge(fields))
      assert_equal 503, answer.status
      assert_equal "503 Service Unavailable: the application did not start\n", answer.body
      refute answer["highball-diagnosis"]
    end
  end

  def test_visitors_get_the_page_that_the_application_has_for_them
    server = serve_broken(folder_with("config.ru" => "raise 'between us'\n", "public/503.html" => "<p>Back soon"))
    answer = server.get("/", HTML.merge("Host" => "evil.example"))
    assert_equal [503, "<p>Back soon"], [answer.status, answer.body]
    assert answer["retry-after"]
  end

  def test_the_page_needs_nothing_from_elsewhere_and_is_not_kept
    answer = serve_broken(folder_with("config.ru" => BROKEN)).get("/", HTML)
    assert_match(/default-src 'none'/, answer["content-security-policy"])
    assert_equal "no-store", answer["cache-control"]
    refute_match(/(?:src|href)=/, answer.body)
    assert_match(/<noscript><meta http-equiv="refresh"/, answer.body)
  end

  def test_messages_of_the_application_are_escaped
    server = serve_broken(folder_with("config.ru" => "raise '<script>alert(1)</script>'\n"))
    page = server.get("/", HTML).body
    refute_includes page, "<script>alert"
    assert_includes page, "&lt;script&gt;alert(1)"
  end

  def test_what_it_printed_is_shown
    config = "puts 'reading the stars'\nwarn 'they are gone'\nraise 'no luck'\n"
    server = serve_broken(folder_with("config.ru" => config))
    assert_equal ["reading the stars", "they are gone"], server.status.dig("diagnosis", "log_tail").first(2)
    assert_includes server.get("/", HTML).body, "they are gone"
  end

  def test_in_production_the_first_boot_has_to_succeed
    output, ended = HighballServer.run("serve", "-e", "production", "-b", "127.0.0.1", "-p", "0",
                                       folder_with("config.ru" => BROKEN))
    refute_predicate ended, :success?
    assert_match(/cause=syntax_error/, output)
  end
end
