# frozen_string_literal: true

# marks: long

require_relative "../../support/e2e_test"
require_relative "../../support/browser"
require_relative "../../support/examples"

# `bin/highball examples/*`: the script, and all applications on one server, each with a host name.
class AllExamplesTest < E2ETest
  def test_each_answers_at_its_own_name
    server = serve_all
    names.each do |name|
      answer = server.get("/", { "Host" => "#{name}.localhost:#{server.port}" }, within: HighballServer::SERVES_WITHIN)
      found, content = Examples::ALL.fetch(name)
      assert_equal 200, answer.status, "#{name}: #{answer.body}"
      assert_includes answer.body.dup.force_encoding("UTF-8"), content, name
      assert_match(/ #{name}: .*#{found}|#{found}.*application="?#{name}\b/, server.log)
    end
    assert_equal names.sort, server.full_status["apps"].map { |app| app["name"] }.sort
    assert_equal ["serving"], server.full_status["apps"].map { |app| app["phase"] }.uniq
    refute_match(/^highball: /, server.log, "bin/setup is asked where something is missing, and only there")
    use_in_a_browser(server) unless LEVEL == "quick"
  end

  def test_the_list_of_them_all_in_a_browser
    server = serve_all
    link = wait_for("the link of the list") { server.log[/list of the applications: (\S+)$/, 1] }
    assert_operator link, :start_with?, "#{at(nil, server)}?highball=", "the link for developers"
    Browser.open do |browser|
      browser.visit link
      browser.find "h1", text: "#{names.length} applications"
      names.each { |name| browser.find "li", text: at(name, server) }
      assert_equal %w[asleep serving], browser.driver.find_elements(css: "li .state").map(&:text).uniq.sort
      browser.click "li > a", text: "rack-file"
      browser.see Examples::ALL["rack-file"].last
      browser.visit at(nil, server)
      row = browser.find("li", text: at("rack-file", server))
      assert_includes row.text, "serving"
    end
  end

  private

  def use_in_a_browser(server)
    Browser.open do |browser|
      write_a_post(browser, server)
      echo(browser, server)
      sign_the_guest_book(browser, server)
      %w[rails-file sinatra-classic sinatra-file].each do |name|
        browser.visit at(name, server)
        browser.find "h1", text: Examples::ALL[name].last
      end
      browser.visit at("sinatra-classic", server)
      browser.click "a"
      browser.see "wind blows."
    end
  end

  # The examples whose packages this Debian has.
  def names
    @names ||= Examples::ALL.keys.select { |name| Examples.missing_packages(name).empty? }
  end

  # All of them in one folder, so that nothing is written into this tree.
  def serve_all
    folder = folder_with
    names.each { |name| FileUtils.cp_r(copy_of_example(name), File.join(folder, name)) }
    script = File.join(HighballServer::ROOT, "bin/highball")
    target = File.expand_path("../..", HighballServer::BINARY)
    server = HighballServer.new(folder, command: [script, *names.map { |name| File.join(folder, name) }],
                                        env: { "PORT" => "0", "CARGO_TARGET_DIR" => target })
    @servers << server
    wait_for("the server", within: HighballServer::SERVES_WITHIN) do
      raise HighballServer::NotServing, server.log unless server.running?

      server.log.include?("serving on")
    end
    server
  end

  # The address of an application, or of the list of all.
  def at(name, server, path = "/") = "http://#{[name, 'localhost'].compact.join('.')}:#{server.port}#{path}"

  def write_a_post(browser, server)
    browser.visit at("blog", server, "/posts/new")
    browser.fill "#post_title", "Night train"
    browser.fill "#post_body", "It left on time."
    browser.click "input[type=submit]"
    browser.see "Published."
    browser.find "h1", text: "Night train"
  end

  # Over a WebSocket. Action Cable accepts only those from the same origin.
  def echo(browser, server)
    browser.visit at("blog", server, "/echo")
    browser.find "#state", text: "connected"
    browser.fill "#text", "who is there?"
    browser.click "#echo button"
    browser.find "#echoes li", text: "who is there?"
  end

  def sign_the_guest_book(browser, server)
    browser.visit at("sinatra", server)
    browser.fill "input[name=text]", "<b>Ada</b>"
    browser.click "button"
    browser.find "li", text: "<b>Ada</b>"
  end
end
