# frozen_string_literal: true

require_relative "../support/e2e_test"

# Applications with Highball's session stores, several workers, and many clients at the same time.
class SessionsTest < E2ETest
  RAILS = <<~'RUBY'
    require "logger"
    require "rails"
    require "action_controller/railtie"
    require "active_support/core_ext/integer/time"
    require "highball/session/rails"

    class Sessions < Rails::Application
      config.load_defaults Rails::VERSION::STRING.to_f
      config.eager_load = true
      config.logger = Logger.new($stdout)
      config.secret_key_base = "0" * 64
      config.session_store :highball_store, key: "_sessions", expire_after: 2.weeks

      routes.append do
        root to: "visits#show"
        get "login", to: "visits#login"
        get "logout", to: "visits#logout"
        get "count", to: "visits#count"
      end
    end

    class VisitsController < ActionController::Base
      def show = render(plain: "#{session[:user]} #{session[:count]}")

      def login
        reset_session
        session[:user] = params[:user]
        show
      end

      def logout
        reset_session
        show
      end

      def count
        session[:count] = session.fetch(:count, 0) + 1
        flash[:notice] = "counted"
        show
      end
    end
  RUBY
  RACK = <<~'RUBY'
    require "highball/session/pstore"

    use Highball::Session::PStore, folder: "#{__dir__}/tmp/sessions"
    run(lambda do |env|
      request = Rack::Request.new(env)
      session = request.session
      case request.path_info
      when "/login" then session.options[:renew] = true and session["user"] = request.params["user"]
      when "/logout" then session.options[:drop] = true and session.clear
      when "/count" then session["count"] = session.fetch("count", 0) + 1
      end
      [200, { "content-type" => "text/plain" }, ["#{session['user']} #{session['count']}"]]
    end)
  RUBY
  CLIENTS = 100
  COUNTS = 5

  def test_a_rails_application = assert_keeps_sessions(folder_with("app.rb" => RAILS), "_sessions")
  def test_a_rack_application = assert_keeps_sessions(folder_with("config.ru" => RACK), "rack.session")

  private

  def assert_keeps_sessions(folder, name)
    server = serve(folder, workers: 3, threads: 3)
    assert_nil visit(server, "/")["set-cookie"]
    assert_no_fixation(server, name)
    concurrently(CLIENTS) { |number| assert_one_client(server, "user#{number}") }
    assert_files(folder)
  end

  # A client cannot choose the id that another one will have after its login.
  def assert_no_fixation(server, name)
    planted = "#{name}=#{'a' * 32}"
    response = visit(server, "/login?user=ada", planted)
    refute_includes cookie_of(response), "a" * 32
    assert_match(/httponly/i, response["set-cookie"])
    assert_match(/samesite=lax/i, response["set-cookie"])
    assert_equal " ", visit(server, "/", planted).body
    before = cookie_of(response)
    visit(server, "/logout", before)
    assert_equal " ", visit(server, "/", before).body
  end

  def assert_one_client(server, user)
    anonymous = cookie_of(visit(server, "/count"))
    cookie = cookie_of(visit(server, "/login?user=#{user}", anonymous))
    refute_equal anonymous, cookie
    before = visit(server, "/", cookie).body[/ (\d+)/, 1].to_i
    COUNTS.times { |count| assert_equal "#{user} #{before + count + 1}", visit(server, "/count", cookie).body }
    assert_equal " ", visit(server, "/", anonymous).body
  end

  # One file for each client that is logged in, which this user alone can read.
  def assert_files(folder)
    files = Dir.glob("#{folder}/tmp/sessions/??/*")
    assert_equal CLIENTS, files.grep(/\h{64}\z/).length
    assert_empty files.grep_v(/\h{64}\z/)
    assert(files.all? { |file| (File.stat(file).mode & 0o777) == 0o600 })
  end

  # Each request has another connection, so that any worker may get it.
  def visit(server, path, cookie = nil)
    headers = { "Host" => "127.0.0.1", "Cookie" => cookie }.compact
    response = server.connect { |client| client.get(path, headers, within: 30) }
    assert_equal 200, response.status, response.body
    response
  end

  def cookie_of(response) = response["set-cookie"][/\A[^;]+/]
end
