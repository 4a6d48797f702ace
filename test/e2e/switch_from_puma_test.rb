# frozen_string_literal: true

require_relative "../support/album_app"
require_relative "../support/browser"
require_relative "../support/e2e_test"

# A Rails application on Puma, and the same one after the change that docs/migrating/puma.md shows: its tests and system
# tests pass on both, and Highball serves it.
class SwitchFromPumaTest < E2ETest
  include AlbumApp

  # Writes the server of each request into the log.
  SERVER = "Rails.application.config.log_tags = [->(request) { request.get_header('SERVER_SOFTWARE') }]\n"
  IMAGE = Random.new(1).bytes(300_000).freeze

  def test_its_own_tests_pass_on_both
    apps = [[album, {}], [album_on_highball, gem_environment]]
    on_puma, on_highball = concurrently(2) { |index| assert_own_tests_pass(*apps[index]) }
    assert_equal ["puma"], on_puma
    assert_equal ["Highball"], on_highball
  end

  def test_the_lock_file_has_only_changed_its_server
    before, after = [album, album_on_highball].map { |app| locked_in(app) }
    assert_equal ["highball"], after - before
    assert_includes [%w[puma], %w[nio4r puma]], (before - after).sort
  end

  def test_rails_server
    use rails_server(album_on_highball, "-b", "127.0.0.1", "-p", "0", env: gem_environment)
  end

  def test_highball_in_the_bundle
    long
    use serve(album_on_highball, command: %w[bundle exec highball -b 127.0.0.1 -p 0], env: gem_environment)
  end

  private

  def locked_in(app) = File.read(File.join(app, "Gemfile.lock")).scan(/^ {4}(\S+) \(/).flatten

  # The servers that have served its system tests.
  def assert_own_tests_pass(app, env)
    File.write(File.join(app, "config/initializers/log_tags.rb"), SERVER)
    output, ended = run_in(app, "ruby", "-W0", "bin/rails", "test:all", env: env)
    assert_predicate ended, :success?, output
    assert_match(/^11 runs, \d+ assertions, 0 failures, 0 errors, [01] skips/, output)
    File.read(File.join(app, "log/test.log")).scan(/^\[(\w+)\S*[^\]]*\] Started/).flatten.uniq
  end

  # As its developer does.
  def use(server)
    Browser.open do |browser|
      publish(browser, server)
      download(browser)
      receive_a_comment(browser)
      receive_news(browser, server)
    end
    reload(server)
    assert_log(server)
  end

  def publish(browser, server)
    browser.visit server.url
    browser.click "a", text: "New photo"
    browser.fill "#photo_title", "Dawn"
    browser.attach "#photo_image", File.join(folder_with("dawn.jpg" => IMAGE), "dawn.jpg")
    browser.click "input[type=submit]"
    browser.see "Photo was successfully created."
  end

  # When the job has written the checksum.
  def download(browser)
    wait_for("the job") do
      browser.driver.navigate.refresh
      browser.find("#checksum").text == Digest::SHA256.hexdigest(IMAGE)
    end
    browser.click "#download"
    assert_equal IMAGE, File.binread(browser.downloaded("dawn.jpg", IMAGE.bytesize))
  end

  # By the WebSocket: the page stays.
  def receive_a_comment(browser)
    browser.find "#cable", text: "connected"
    wait_for("the subscription") { browser.find("#cable").text == "connected" }
    comment(browser, "Before the storm.")
    browser.find "#comments li", text: "Before the storm."
  end

  def comment(browser, text)
    browser.driver.execute_script(<<~JAVASCRIPT, text)
      const form = new FormData(document.querySelector("form"));
      form.set("comment[text]", arguments[0]);
      fetch(document.querySelector("form").action, { method: "POST", body: form });
    JAVASCRIPT
  end

  # The first event is there before there is a cause for the second one.
  def receive_news(browser, server)
    pieces = []
    server.connect do |connection|
      connection.send_request("GET", "/news/events", { "Host" => "127.0.0.1" })
      connection.read_response do |piece|
        comment(browser, "What a storm!") if pieces.empty?
        pieces << piece
      end
    end
    assert_equal "data: Waiting for news.\n\ndata: What a storm!\n\n", pieces.join
  end

  def reload(server)
    controller = "app/controllers/photos_controller.rb"
    insert(server.app, controller, "    return render(plain: 'edited') if params[:edited]", "def index\n")
    assert_equal "edited", browse(server, "/photos?edited=1").body
    insert(server.app, controller, "    raise 'out of film' if params[:film]", "def index\n")
    page = browse(server, "/photos?film=none")
    assert_equal 500, page.status
    assert_match(/RuntimeError.*PhotosController#index.*out of film/m, page.body)
  end

  def assert_log(server)
    wait_for("the log") { server.log.include?("RuntimeError (out of film)") }
    ['Started POST "/photos"', 'Started GET "/news/events"', 'Started GET "/photos?film=none"',
     "Performed ChecksumJob", "RuntimeError (out of film)"].each do |words|
      assert_equal 1, server.log.scan(words).length, words
    end
    assert_match(%r{out of film.*\n\s*app/controllers/photos_controller\.rb:\d+:in}, server.log)
    refute_match(/Puma|WEBrick/, server.log)
  end
end
