# frozen_string_literal: true

# marks: debian13

require_relative "../../support/e2e_test"
require_relative "../../support/browser"

# The smaller examples, as their readers start them: from their own folders, in development.
class ExamplesTest < E2ETest
  def test_rack
    server = serve("rack", environment: "development")
    assert_equal "Hello World", server.get("/").body
  end

  def test_sinatra
    server = serve("sinatra", environment: "development")
    Browser.open do |browser|
      browser.visit server.url
      browser.fill "input[name=text]", "<b>Ada</b>"
      browser.click "button"
      browser.find "li", text: "<b>Ada</b>"
    end
  end

  def test_streaming
    server = serve("streaming", environment: "development")
    Browser.open do |browser|
      browser.visit server.url
      browser.find "#state", text: "connected"
      first = browser.find("#clock", text: ":").text
      wait_for("the next tick") { browser.text("#clock") != first }
    end
    assert_equal 3 * MIB, server.get("/download?mib=3").body.bytesize
  end

  def test_lines_arrive_one_after_the_other
    server = serve("streaming")
    pieces = []
    server.connect do |connection|
      connection.send_request("GET", "/stream")
      connection.read_response { |piece| pieces << [piece, Deadline.now] }
    end
    assert_equal Array.new(5) { |number| "line #{number + 1} of 5\n" }, pieces.map(&:first)
    assert_operator pieces.last.last - pieces.first.last, :>, 0.5
  end

  def test_an_event_stream_ends_with_its_reader
    server = serve("streaming", threads: 1)
    server.connect do |connection|
      connection.send_request("GET", "/clock")
      connection.socket.wait_readable(10)
    end
    # Its only thread is free again once the next event finds no reader.
    assert_equal 404, server.get("/free", within: 10).status
  end

  def test_every_example_says_what_it_is_and_needs
    Dir.children(HighballServer::EXAMPLES).each do |name|
      folder = File.join(HighballServer::EXAMPLES, name)
      packages = File.readlines("#{folder}/debian-packages", chomp: true)
      packages.each { |package| assert_match(/\A[a-z0-9][a-z0-9.+-]+\z/, package) }
      assert_includes File.read("#{folder}/README.md"), "bin/highball examples/#{name}"
    end
  end
end
