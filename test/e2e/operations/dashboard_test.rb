# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/admin"
require_relative "../../support/dashboard"
require_relative "../../support/stuck_app"

# The dashboard at the addresses of the option `admin`: reports, orders, and those who follow it.
class DashboardTest < E2ETest
  include Admin
  include StuckApp
  include Dashboard

  ACTIONS = %w[restart refork more-workers fewer-workers replace/1 profile verify].freeze

  def test_the_page_needs_nothing_from_elsewhere
    serve("probe", *admin)
    pages = Array.new(2) { ask_admin("/") }
    policies = pages.map { |page| page["content-security-policy"] }
    assert_equal 2, policies.uniq.length, "each answer has its own nonce"
    assert_match(/\Adefault-src 'none'; style-src 'nonce-\h{32}'; script-src 'nonce-\h{32}'; connect-src 'self';/,
                 policies[0])
    assert_equal %w[no-store nosniff], pages[0].values("cache-control") + pages[0].values("x-content-type-options")
    refute_match(%r{https?://|<[^>]* on\w+=|<script(?! nonce)}, pages[0].body)
  end

  def test_all_threads_are_stuck
    server = serve(stuck_app, *admin, *DRAIN, workers: 4, threads: 3)
    targets = stick_all(server)
    paths = targets.map { |target| target.sub("token=secret", "…") }
    # Each at some time: a worker that answers late, on a busy machine, is explained by the kernel alone.
    left = paths
    wait_for("the states") do
      found = requests.select { |request| DOING.fetch(way(request)).match?(request["doing"].to_s) }
      left -= found.map { |request| request["path"] }
      left.empty?
    end
    assert_equal paths.sort, requests.map { |request| request["path"] }.sort
    requests.each { |request| assert_explained(request) }
    wait_for("a health check") { ask_admin("/livez").status == 200 } # 503 where the front was late
  end

  def test_requests_that_are_none
    serve("probe", *admin)
    %w[1/1/1 x/1/1 1 1/2/3/4/5].each { |wrong| assert_equal 404, ask_admin("/requests/#{wrong}").status, wrong }
  end

  def test_without_the_option_no_order_is_taken
    server = serve("probe", *admin)
    refute report["takes_orders"]
    ACTIONS.each { |action| assert_equal 404, post("#{app['id']}/#{action}", authorized("x")).status, action }
    output = highball_fails("top", "--token", "--port", server.port.to_s)
    assert_match(/accepts no actions; serve with --admin ADDRESS --admin-actions/, output)
  end

  def test_without_the_token_no_order_is_taken
    server = serve("probe", *admin, "--admin-actions", workers: 2)
    token = token_of(server)
    id = app["id"]
    without_it(token).product(%w[restart more-workers profile]).each do |headers, action|
      assert_equal 403, post("#{id}/#{action}?token=#{token}", headers).status, headers
    end
    assert_equal 404, ask_admin("/actions/#{id}/restart", authorized(token)).status, "a GET"
    assert_equal 405, ask_admin("/actions/#{id}/restart", authorized(token), method: "PUT").status
    assert_equal [1, 2], [app["generation"], app["workers_wanted"]]
    refute_includes server.log, token
  end

  def test_orders
    server = serve_with_actions
    assert_equal 200, post("verify", authorized(@token)).status
    assert_equal [200, "3 workers from now on"], order("more-workers")
    wait_for("three workers") { server.status["workers"].count { |worker| worker["state"] == "serving" } == 3 }
    assert_equal [200, "2 workers from now on"], order("fewer-workers")
    assert_equal [200, "the restart to generation 2 has begun"], order("restart")
    wait_for("the restart") { app["generation"] == 2 && app["under_way"].nil? }
    assert_match(/the dashboard sent an order.*restart/, server.log)
    assert_equal 404, post("#{app['id']}/stop", authorized(@token)).status
    assert_equal 409, post("4711/restart", authorized(@token)).status
  end

  def test_a_worker_is_replaced
    server = serve_with_actions
    begin_requests(server, "/sleep/1")
    wait_for("the request") { requests.any? }
    worker = requests[0]["worker"]
    assert_equal 200, order("replace/#{worker}")[0]
    wait_for("another worker") { app["workers"].none? { |one| one["worker"] == worker } }
    assert_equal [409, "worker #{worker} has ended"], order("replace/#{worker}")
  end

  def test_a_profile
    server = serve_with_actions
    path = "/profiles/#{app['id']}"
    begin_requests(server, "/sleep/1")
    assert_equal 404, ask_admin(path).status, "none has been taken"
    assert_match(/are sampled for 10 seconds/, order("profile").last)
    assert_equal [409, "a profile of this application is under way"], order("profile")
    assert_includes ask_admin("/").body, "being sampled"
    link = %r{<a href="#{path}">Flame graph</a>}
    wait_for("the flame graph", within: 60) { ask_admin("/").body.match?(link) }
    graph = ask_admin(path)
    assert_includes graph.body, "stuck_in_sleep"
    assert_includes graph.body, "GET /sleep/:id"
    nonce = graph.body[/nonce-(\h{32})/, 1]
    assert_match(/\Adefault-src 'none'; style-src 'nonce-#{nonce}'; script-src 'nonce-#{nonce}';/,
                 graph["content-security-policy"])
    %w[/profiles/4711 /profiles/x].each { |other| assert_equal 404, ask_admin(other).status, other }
  end

  # Followers take no places of health checks. One more has the place of the oldest, whose browser opens another one.
  def test_more_followers_than_there_is_room_for
    server = serve(stuck_app, *admin, *DRAIN)
    followers = Array.new(16) { follow }
    report = /^data: \{"html":"<header .*\}\n\n/
    followers.each { |follower| assert_match(report, read_event(follower)) }
    assert_match report, read_event(follow)
    assert_ends followers.first
    followers.drop(1).each { |follower| assert_match(report, read_event(follower)) }
    idle = Array.new(127) { HttpConnection.unix(admin_path) }
    wait_for("a health check") { ask_admin("/livez").status == 200 } # 503 where the front was late
    # Those who follow see the end of the server as an end.
    server.stop
  ensure
    [*idle, *@followers].each(&:close)
  end

  private

  def authorized(token) = { "Authorization" => "Bearer #{token}" }
  def report = JSON.parse(ask_admin("/overview").body)
  def app = report.dig("overview", "apps", 0)
  def requests = app.fetch("requests")

  def post(order, headers) = ask_admin("/actions/#{order}", headers, method: "POST")

  def serve_with_actions
    serve(stuck_app, *admin, *DRAIN, "--admin-actions", workers: 2).tap { |server| @token = token_of(server) }
  end

  # Headers of those who do not have the token, or of browsers that another website makes send it.
  def without_it(token)
    host = { "Host" => "127.0.0.1" }
    with = authorized(token)
    [{}, authorized(""), authorized(token[1..]), authorized(token.reverse), { "Authorization" => "Basic #{token}" },
     with.merge(host, "Origin" => "http://evil.example"), with.merge(host, "Origin" => "http://127.0.0.1:1"),
     with.merge("Sec-Fetch-Site" => "cross-site"), { "Cookie" => "token=#{token}" }]
  end

  def assert_explained(request)
    assert_nil request["backtrace"]
    assert_nil request["client"], "the page is for everybody who reaches it"
    wait_for("the backtrace of #{request}") do
      about = ask_admin("/requests/#{app['id']}/#{request['worker']}/#{request['ticket']}")
      JSON.parse(about.body).dig("request", "backtrace").to_s.match?(/config\.ru:\d+:in .*stuck_in_#{way(request)}/)
    end
  end

  def way(request) = request["path"][/\w+/]

  # The status, and what was begun or why not.
  def order(action)
    answer = post("#{app['id']}/#{action}", authorized(@token))
    outcome = JSON.parse(answer.body)
    [answer.status, outcome["done"] || outcome["why_not"]]
  end

  def follow
    HttpConnection.unix(admin_path).tap do |connection|
      (@followers ||= []) << connection
      connection.send_request("GET", "/events")
    end
  end

  def assert_ends(connection)
    assert_kind_of String, connection.read_to_end(within: 10)
  end

  # What comes, up to the end of a report.
  def read_event(connection)
    read = +""
    wait_for("a report") { (read << connection.read_some).match?(/^data: .*\n\n/) }
    read
  end
end
