# frozen_string_literal: true

# Clients of an application that keeps sessions: `/login?user=`, `/logout`, `/count`, and `/`, which shows the user and
# the count.
module SessionClients
  # A Rails application. The first argument of `format` is code that sets the store.
  RAILS = <<~'RUBY'
    require "logger"
    require "rails"
    require "action_controller/railtie"
    require "active_support/core_ext/integer/time"

    class Visits < Rails::Application
      config.load_defaults Rails::VERSION::STRING.to_f
      config.eager_load = true
      config.logger = Logger.new($stdout)
      config.secret_key_base = "0" * 64
    %s
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
  CLIENTS = 100
  COUNTS = 5

  private

  # Many clients at the same time: each sees all values of its session, and those of no other.
  def assert_sessions_kept_apart(server, ended: true)
    concurrently(CLIENTS) { |number| assert_one_client(server, "user#{number}", ended) }
  end

  # ended:: whether the store ends the session before a login. That of cookies cannot.
  def assert_one_client(server, user, ended)
    anonymous = cookie_of(visit(server, "/count"))
    response = visit(server, "/login?user=#{user}", anonymous)
    cookie = cookie_of(response)
    refute_equal anonymous, cookie
    before = response.body[/ (\d+)/, 1].to_i
    COUNTS.times do |count|
      response = visit(server, "/count", cookie)
      cookie = cookie_of(response) if response["set-cookie"] # a session that is in the cookie
      assert_equal "#{user} #{before + count + 1}", response.body
    end
    assert_equal " ", visit(server, "/", anonymous).body if ended
  end

  # Each request has another connection, so that any worker may get it.
  def visit(server, path, cookie = nil, status: 200)
    headers = { "Host" => "127.0.0.1", "Cookie" => cookie }.compact
    response = server.connect { |client| client.get(path, headers, within: 30) }
    assert_equal status, response.status, response.body
    response
  end

  def cookie_of(response) = response["set-cookie"][/\A[^;]+/]
end
