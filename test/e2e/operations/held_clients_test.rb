# frozen_string_literal: true

require "net/http"
require_relative "../../support/axe"
require_relative "../../support/browser"
require_relative "../../support/dashboard"
require_relative "../../support/event_client"
require_relative "../../support/held_cable_test_case"

# Clients that the front holds, in `highball top` and on the dashboard.
class HeldClientsTest < HeldCableTestCase
  include Dashboard

  EVENTS = <<~RUBY
    map("/ticks") { run ->(_env) { [200, { "content-type" => "text/event-stream", "highball-stream" => "ticks" }, []] } }
  RUBY

  def setup
    super
    start(*tcp, more: EVENTS)
  end

  def teardown
    @event_client&.close
    super
  end

  def test_in_a_terminal
    refute_includes top, "WEBSOCKETS"
    hold
    title, row = top.lines.grep(/\A  (HELD|highball-app)/).last(2)
    assert_equal %w[HELD WEBSOCKETS RESPONSES STREAMS MESSAGES/S SLOW CLOSED], title.split
    assert_match(/\A  highball-app\S* +2 +1 +\d+ +\S+ +0\n\z/, row)
    assert_operator top.lines.grep(/WEBSOCKETS/).first.chomp.length, :<=, 80
    assert_equal 2, JSON.parse(top("--json")).dig("apps", 0, "hub", "cable_clients")
  end

  def test_messages_a_second
    hold
    publisher = Thread.new { broadcast("room", "x") until @is_done }
    wait_for("a rate") { top[/^  highball-app\S* +2 +1 +\d+ +(\S+) +0$/, 1].to_f.positive? }
  ensure
    @is_done = true
    publisher&.join
  end

  def test_on_the_dashboard
    refute_includes Net::HTTP.get(URI(page(@server))), "WebSockets held"
    hold
    Browser.open do |browser|
      browser.visit page(@server)
      assert_equal ["WebSockets held", "2"], fact(browser, "WebSockets held")
      assert_equal ["Responses held", "1"], fact(browser, "Responses held")
      assert_empty Axe.violations(browser.driver) if Axe.installed?
    end
  end

  private

  def hold
    2.times { client.subscribe }
    @event_client = EventClient.new(@server, "/ticks").open
    wait_for("all to be held") { @server.status["hub"].values_at("cable_clients", "held") == [2, 1] }
  end

  def top(option = "--once") = highball("top", option, "--port", @server.port.to_s).force_encoding("UTF-8")

  # Its name and value.
  def fact(browser, name) = browser.find(".facts div", text: name).text.split("\n")
end
