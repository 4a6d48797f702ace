# frozen_string_literal: true

# marks: debian13

require_relative "../../support/e2e_test"
require_relative "../../support/browser"

# The Rails example as a visitor sees it, in Chromium.
class BlogTest < E2ETest
  def setup
    super
    @blog = copy_of_example("blog")
  end

  def test_in_development
    use_the_blog serve(@blog, environment: "development")
  end

  def test_in_production_with_two_workers
    use_the_blog serve(@blog, workers: 2)
  end

  def test_changes_of_the_source_show_at_once_in_development
    server = serve(@blog, environment: "development")
    browse = -> { server.get("/", { "Host" => "127.0.0.1" }).body.force_encoding("UTF-8") }
    assert_includes browse.call, "Every blog begins with one post."
    view = File.join(@blog, "app/views/posts/index.html.erb")
    File.write(view, File.read(view).sub("Every blog begins with one post.", "Say something."))
    assert_includes browse.call, "Say something."
    controller = File.join(@blog, "app/controllers/posts_controller.rb")
    File.write(controller, File.read(controller).sub("def index", "def index\n    return head(418)"))
    wait_for("the new controller") { server.get("/", { "Host" => "127.0.0.1" }).status == 418 }
  end

  def test_rails_restart_brings_changes_in_production
    long
    server = serve(@blog, complete: true)
    assert_includes server.get("/").body, "Every blog begins with one post."
    view = File.join(@blog, "app/views/posts/index.html.erb")
    File.write(view, File.read(view).sub("Every blog begins with one post.", "Say something."))
    assert_includes server.get("/").body, "Every blog begins with one post."
    assert system(HighballServer::ENVIRONMENT, "ruby", "bin/rails", "restart", chdir: @blog, out: File::NULL)
    wait_for("the new view", within: 30) { server.get("/").body.include?("Say something.") }
    assert_equal "tmp/restart.txt", server.status["restarts"].last["asked_by"]
  end

  private

  def use_the_blog(server)
    Browser.open do |browser|
      browser.visit server.url
      browser.see "Nothing here yet"
      write_a_post(browser)
      comment(browser)
      download_the_file(browser, server)
      echo(browser, server)
    end
  end

  def write_a_post(browser)
    browser.click "nav a", text: "Write"
    browser.fill "#post_title", "Night train"
    browser.fill "#post_body", "It left on time."
    browser.attach "#post_file", attachment
    browser.click "input[type=submit]"
    browser.see "Published."
    browser.find "h1", text: "Night train"
  end

  def comment(browser)
    browser.fill "#comment_author", "Ada"
    browser.fill "#comment_body", "So it did."
    browser.click "#comments input[type=submit]"
    browser.find ".comment", text: "So it did."
    browser.see "1 comment"
  end

  def download_the_file(browser, server)
    browser.click "#file"
    path = browser.downloaded("timetable.bin", File.size(attachment))
    assert_equal Digest::SHA256.file(attachment), Digest::SHA256.file(path)
    file = server.get("/posts/1/file", { "Host" => "127.0.0.1" }).body
    assert_equal Digest::SHA256.file(attachment).hexdigest, Digest::SHA256.hexdigest(file)
  end

  def echo(browser, server)
    browser.visit server.url("/echo")
    browser.find "#state", text: "connected"
    ["first words", "ünïcödé ✓"].each do |text|
      browser.fill "#text", text
      browser.click "#echo button"
      browser.find "#echoes li", text: text
    end
  end

  def attachment
    @attachment ||= File.join(folder_with("timetable.bin" => Random.new(1).bytes(300_000)), "timetable.bin")
  end
end
