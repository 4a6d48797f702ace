# frozen_string_literal: true

require_relative "../../support/e2e_test"

# Where no file can be written, as in a container that is read-only.
class ReadOnlyTest < E2ETest
  # A file system that others see as before.
  READ_ONLY = "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp && mount --bind /var/tmp /var/tmp && " \
              "mount -o remount,bind,ro /var/tmp && exec"
  ALONE = ["unshare", "--mount", "--propagation", "private"].freeze

  def setup
    super
    skip "needs root, to mount file systems" unless Process.uid.zero?
    skip "file systems cannot be mounted here" unless system(*ALONE, "sh", "-c", "#{READ_ONLY} true",
                                                             %i[out err] => File::NULL)
  end

  def test_uploads_are_kept_in_memory_within_limits
    server = serve_read_only
    assert_match(/no files can be created in the spool folder.*kept in memory/, server.log)
    body = Random.new(1).bytes(3 * MIB)
    assert_equal Digest::SHA256.hexdigest(body), server.request("POST", "/digest", {}, body).body
    too_much = server.exchange("POST /digest HTTP/1.1\r\nHost: test\r\nContent-Length: #{65 * MIB}\r\n\r\n")
    assert_equal [413], too_much.map(&:status)
  end

  def test_a_slow_client_gets_all_of_a_large_answer
    server = serve_read_only
    connection = server.connect.write("GET /large HTTP/1.1\r\nHost: test\r\n\r\n")
    # Its worker is free before the client has taken it.
    wait_for("the worker") { server.get("/served").body == "large" }
    assert_equal 8 * MIB, connection.read_response.body.bytesize
  end

  private

  APP = <<~RUBY.freeze
    require "digest"
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/digest" then [200, {}, [Digest::SHA256.hexdigest(env["rack.input"].read)]]
      when "/large"
        $served = "large"
        [200, {}, ["x" * #{8 * MIB}]]
      else [200, {}, [$served.to_s]]
      end
    end)
  RUBY

  def serve_read_only
    options = %w[-b 127.0.0.1 -p 0 -e production -w 1 -t 1]
    app = folder_with("config.ru" => APP)
    command = [*ALONE, "sh", "-c", "#{READ_ONLY} \"$@\"", "sh", HighballServer::BINARY, "serve", *options, app]
    serve(app, command: command, env: { "TMPDIR" => nil, "HIGHBALL_CONTROL" => nil })
  end
end
