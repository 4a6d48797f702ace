# frozen_string_literal: true

require_relative "http_connection"

# For a test that asks a server's address for health checks and metrics: a Unix socket.
module Admin
  # An application that answers `/wait` when there is a file `go` in its folder.
  WAITS = <<~RUBY
    run lambda { |env|
      sleep 0.01 until File.exist?(File.join(__dir__, "go")) if env["PATH_INFO"] == "/wait"
      [200, {}, ["ok"]]
    }
  RUBY

  private

  def admin_path = @admin_path ||= File.join(folder_with, "admin.sock")

  def admin = ["--admin", "unix:#{admin_path}"]

  def ask_admin(target, headers = {}, method: "GET", **options)
    HttpConnection.unix(admin_path).use { |connection| connection.request(method, target, headers, **options) }
  end
end
