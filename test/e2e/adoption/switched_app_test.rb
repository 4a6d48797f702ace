# frozen_string_literal: true

# marks: long

require_relative "../../support/album_app"
require_relative "../../support/browser"
require_relative "../../support/e2e_test"

# A Rails application after its switch from Puma, used by its developer: a form, Active Storage, a job, Action Cable, a
# stream, the log, an edited file, and an exception.
class SwitchedAppTest < E2ETest
  include AlbumApp

  IMAGE = Random.new(1).bytes(300_000).freeze

  def test_rails_server
    use rails_server(album_on_highball, "-b", "127.0.0.1", "-p", "0", env: gem_environment)
  end

  def test_highball_in_the_bundle
    long
    use serve(album_on_highball, command: %w[bundle exec highball -b 127.0.0.1 -p 0], env: gem_environment)
  end

  private

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
      browser.text("#checksum") == Digest::SHA256.hexdigest(IMAGE)
    end
    browser.click "#download"
    assert_equal IMAGE, File.binread(browser.downloaded("dawn.jpg", IMAGE.bytesize))
  end

  # By the WebSocket: the page stays.
  def receive_a_comment(browser)
    browser.find "#cable", text: "connected"
    wait_for("the subscription") { browser.text("#cable") == "connected" }
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
