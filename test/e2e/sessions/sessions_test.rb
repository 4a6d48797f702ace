# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/session_clients"

# Applications with Highball's session stores, several workers, and many clients at the same time.
class SessionsTest < E2ETest
  include SessionClients

  HIGHBALL_STORE = <<-RUBY
  require "highball/session/rails"
  config.session_store :highball_store, key: "_sessions", expire_after: 2.weeks
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
  def test_a_rails_application
    assert_keeps_sessions(folder_with("app.rb" => format(RAILS, HIGHBALL_STORE)), "_sessions")
  end

  def test_a_rack_application = assert_keeps_sessions(folder_with("config.ru" => RACK), "rack.session")

  private

  def assert_keeps_sessions(folder, name)
    server = serve(folder, workers: 3, threads: 3)
    assert_nil visit(server, "/")["set-cookie"]
    assert_no_fixation(server, name)
    assert_sessions_kept_apart(server)
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

  # One file for each client that is logged in, which this user alone can read.
  def assert_files(folder)
    files = Dir.glob("#{folder}/tmp/sessions/??/*")
    assert_equal CLIENTS, files.grep(/\h{64}\z/).length
    assert_empty files.grep_v(/\h{64}\z/)
    assert(files.all? { |file| (File.stat(file).mode & 0o777) == 0o600 })
  end
end
