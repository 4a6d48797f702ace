# frozen_string_literal: true

# marks: long

require "uri"
require_relative "../../support/gateway_server_test_case"
require_relative "../../support/examples"
require_relative "../../support/redmine_app"

# Pages of real applications: visitors of nginx, lighttpd and Apache (over FastCGI) and of a LiteSpeed web server (over
# LSAPI) see what Highball sends over HTTP.
class GatewayPagesTest < GatewayServerTestCase
  PAGES = [["GET", "/"], ["HEAD", "/"], ["GET", "/none"], ["GET", "/posts/new"]].freeze
  PAGES_OF_REDMINE = [
    ["GET", "/"], ["GET", "/login"], ["HEAD", "/login"], ["GET", "/projects"], ["GET", "/issues"], ["GET", "/none"],
    ["GET", "/robots.txt"], ["GET", "/stylesheets/application.css"]
  ].freeze
  FORM = { "Content-Type" => "application/x-www-form-urlencoded" }.freeze
  TEXT = "It left on time. " * 2000

  # What is different in each answer: keys against forgery, the number of a post, the time, a wind.
  VARYING = %r{(?<=name="csrf-token"\ content="|name="authenticity_token"\ value=")[^"]*|(?<=form-)\h+|
               /winds/\w+">\w+|\d\d:\d\d:\d\d|(?<=/posts/)\d+}x

  # Pages of every example that this machine has the packages for.
  def test_examples
    names = Examples::ALL.keys.select { |name| Examples.missing_packages(name).empty? }
    assert_includes names, "static"
    concurrently(2) do |half|
      names.select.with_index { |_, number| number % 2 == half }.each do |name|
        each_way(serve_gateways(copy_of_example(name))) { |visitor| PAGES.map { |request| page(visitor, *request) } }
      end
    end
  end

  # A form, with a cookie and a key against forgery, and a redirect to the page that it makes.
  def test_a_post_in_the_blog
    skip "needs Rails" unless Examples.missing_packages("blog").empty?
    each_way(serve_gateways(copy_of_example("blog"))) do |visitor|
      session, key = session_on(visitor, "/posts/new")
      form = URI.encode_www_form("authenticity_token" => key, "post[title]" => "Night train", "post[body]" => TEXT)
      sent = visitor.call("POST", "/posts", session, form)
      path = sent["location"].to_s[%r{\Ahttp://probe\.localhost(/posts/\d+)\z}, 1]
      assert_equal [302, true], [sent.status, !path.nil?], "#{sent.fields}\n#{sent.body}"
      page(visitor, "GET", path).tap { |post| assert_includes post.last, TEXT.strip }
    end
  end

  def test_redmine
    very_long
    skip "needs the packages redmine and redmine-sqlite" unless RedmineApp.installed?
    instance = RedmineApp.copy_instance(folder_with)
    each_way(serve_gateways(RedmineApp::INSTALLED, env: instance, ready: "/login")) do |visitor|
      session, key = session_on(visitor, "/login")
      form = URI.encode_www_form("authenticity_token" => key, "username" => "nobody", "password" => "wrong")
      attempt = page(visitor, "POST", "/login", session, form)
      assert_includes attempt.last, "Invalid user or password"
      [attempt, *PAGES_OF_REDMINE.map { |request| page(visitor, *request) }]
    end
  end

  private

  def serve_gateways(app, **settings)
    serve(app, *BINDS, **settings)
  end

  # Runs the block for visitors over HTTP, of each of the programs and over LSAPI: it gets what sends a request on a
  # connection and returns the answer. Its value has to be the same for all.
  def each_way(server)
    due = yield ->(method, target, fields = {}, body = nil) { server.request(method, target, HOST.merge(fields), body) }
    ways(server).each do |way, connect|
      seen = yield(lambda do |method, target, fields = {}, body = nil|
        connect.call { |connection| connection.request(method, target, HOST.merge(fields), body, **options(way)) }
      end)
      assert_equal due, seen, way
    end
  end

  def ways(server)
    programs = PROGRAMS.select { |_, command| installed?(command) }
    in_front_of_it = programs.to_h do |program, command|
      [program, in_front(program, command, binds(server).first).method(:connect)]
    end
    in_front_of_it.merge("lsapi" => ->(&use) { gateway(server, "lsapi", &use) })
  end

  def options(way)
    way == "lsapi" ? { params: LOCAL } : {}
  end

  # Status, type and body, without what varies.
  def page(visitor, *request)
    answer = visitor.call(*request)
    [answer.status, answer["content-type"], answer.body.dup.force_encoding("UTF-8").gsub(VARYING, "")]
  end

  # A session's cookie for a form, and the form's key against forgery.
  def session_on(visitor, target)
    answer = visitor.call("GET", target)
    [FORM.merge("Cookie" => answer["set-cookie"].to_s[/\A[^;]+/]), answer.body[/authenticity_token" value="([^"]+)/, 1]]
  end
end
