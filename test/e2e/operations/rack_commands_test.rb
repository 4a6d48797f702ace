# frozen_string_literal: true

require_relative "../../support/e2e_test"

# The commands of Rack and Rails that start Highball, and an application object that is given to Rack's handler.
class RackCommandsTest < E2ETest
  LIB = { "RUBYLIB" => File.join(HighballServer::ROOT, "lib") }.freeze

  def test_rackup_hands_over_under_the_same_pid
    command = ["rackup", "-s", "highball", "-E", "production", "-o", "127.0.0.1", "-p", free_port.to_s, "config.ru"]
    use_by_another_command("probe", command)
  end

  def test_rails_server_hands_over_under_the_same_pid
    blog = copy_of_example("blog")
    command = ["ruby", "bin/rails", "server", "-u", "highball", "-b", "127.0.0.1", "-p", free_port.to_s]
    use_by_another_command(blog, command)
  end

  def test_a_given_app_object_is_served_by_its_caller
    script = File.join(folder_with("serve.rb" => <<~RUBY), "serve.rb")
      require "rack"
      begin
        require "rackup"
        handler = Rackup::Handler.get("highball")
      rescue LoadError
        handler = Rack::Handler.get("highball")
      end
      app = ->(env) { [200, { "content-type" => "text/plain" }, ["an object"]] }
      handler.run(app, Host: "127.0.0.1", Port: #{free_port})
    RUBY
    server = serve(File.dirname(script), command: ["ruby", script], env: LIB)
    assert_equal "an object", server.get("/").body
    assert_equal false, server.status["restartable"]
    assert_predicate server.stop, :success?
  end

  private

  def use_by_another_command(app, command)
    server = serve(app, command: command, env: LIB)
    # The host that a browser would name: Rails checks it in development.
    assert_equal 200, server.get("/", { "Host" => "127.0.0.1" }).status
    assert_includes File.readlink("/proc/#{server.pid}/exe"), "highball"
    assert_includes server.status.fetch("workers").map { |worker| worker["state"] }, "serving"
    assert_predicate server.stop, :success?
  end
end
