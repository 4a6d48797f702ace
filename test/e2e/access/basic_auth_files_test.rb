# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/basic_auth_users"
require_relative "../../support/env_mirror"

# Files of users (`basic_auth`) that change, or cannot be used.
class BasicAuthFilesTest < E2ETest
  include EnvMirror
  include BasicAuthUsers

  def test_a_changed_file_counts_soon
    server = serve_users({ "ann" => BCRYPT, "bob" => BCRYPT }, *TRUSTED)
    assert_equal [200, 200, 401], statuses(server, %w[ann bob eve])
    write_users("ann" => BCRYPT, "eve" => BCRYPT)
    wait_for("the new user") { statuses(server, %w[eve]) == [200] }
    assert_equal [200, 401], statuses(server, %w[ann bob]), "what was known is forgotten"
    write_users("ann" => "other".crypt("$2y$04$abcdefghijklmnopqrstuu"))
    wait_for("the new password") { statuses(server, %w[ann], "other") == [200] }
    assert_equal [401], statuses(server, %w[ann])
  end

  # Those who have logged in are remembered, also where their address has none left to try.
  def test_a_change_ends_the_logins_of_those_whom_it_concerns
    server = serve_users({ "ann" => BCRYPT, "bob" => BCRYPT, "eve" => BCRYPT }, *TRUSTED)
    from = { "X-Forwarded-For" => "192.0.2.66" }
    ask = ->(name, password = PASSWORD) { server.get("/", by(name, password).merge(from)).status }
    assert_equal [200] * 3, %w[ann bob eve].map(&ask)
    10.times { |number| ask.call("ann", "guess#{number}") }
    assert_equal [200, 200, 429], [ask.call("ann"), ask.call("eve"), ask.call("ann", "guess")]
    other = "other".crypt("$2y$04$abcdefghijklmnopqrstuu")
    write_users("new" => BCRYPT, "eve" => other, "ann" => BCRYPT)
    wait_for("the change") { ask.call("bob") == 429 }
    assert_equal [200, 429, 429], [ask.call("ann"), ask.call("eve"), ask.call("eve", "other")]
    assert_equal [200, 401], statuses(server, %w[new bob])
  end

  def test_a_file_that_cannot_be_used_refuses_everything
    server = serve_users({ "ann" => BCRYPT })
    assert_equal 200, server.get("/", by("ann")).status
    { "ann:a-plain-secret\n" => "line 1 has a password that is plain text", "# empty\n" => "it has no user",
      "ann:#{BCRYPT}\nbob-is-a-secret\n" => "line 2 is not NAME:HASH",
      "ann:#{BCRYPT.sub('$04$', '$20$')}" => "a bcrypt hash with a cost above 14" }.each do |text, problem|
      File.write(@users, text)
      wait_for(problem) { server.get("/", by("ann")).status == 500 && server.log.include?(problem) }
      assert_equal [401, 500], [server.get("/a.txt").status, server.get("/a.txt", by("ann")).status]
    end
    assert_includes server.log, "htpasswd -B"
    refute_match(/secret/, server.log)
    write_users("ann" => BCRYPT)
    wait_for("the file") { server.get("/", by("ann")).status == 200 }
    assert_includes server.log, "can be used again"
  end

  def test_what_is_no_file_refuses_everything_and_holds_up_nothing
    server = serve_users({ "ann" => BCRYPT })
    { "it does not exist" => -> {}, "it is a named pipe" => -> { File.mkfifo(@users) },
      "it is a folder" => -> { Dir.mkdir(@users) }, "it is a device" => -> { File.symlink("/dev/zero", @users) },
      "the kernel makes up" => -> { File.symlink("/proc/version", @users) } }.each do |problem, replace|
      FileUtils.rm_rf(@users)
      replace.call
      wait_for(problem) { server.get("/", by("ann")).status == 500 && server.log.include?(problem) }
      assert_equal 401, server.get("/").status
    end
    FileUtils.rm_rf(@users)
    write_users("ann" => BCRYPT)
    wait_for("the file") { server.get("/", by("ann")).status == 200 }
  end

  def test_a_missing_file_is_reported_before_a_request_needs_it
    server = serve_users(nil)
    wait_for("the log") { server.log.include?("cannot use the file of users (basic_auth)") }
    assert_equal 500, server.get("/", by("ann")).status
  end

  def test_the_configuration_is_reloaded
    folder = app("ann" => BCRYPT)
    file = File.join(folder, "config/highball.toml")
    FileUtils.mkdir_p(File.dirname(file))
    File.write(file, "threads = 2\n")
    server = serve(folder)
    assert_equal 200, server.get("/").status
    File.write(file, "threads = 2\nbasic_auth = '#{@users}'\nbasic_auth_realm = 'Staging of the blog'\n")
    server.signal("HUP")
    wait_for("the reload") { server.get("/").status == 401 }
    assert_includes server.get("/")["www-authenticate"], '"Staging of the blog"'
    assert_equal 200, server.get("/", by("ann")).status
    File.write(file, "threads = 2\n")
    server.signal("HUP")
    wait_for("the reload") { server.get("/").status == 200 }
  end
end
