# frozen_string_literal: true

require "socket"
require_relative "../../support/e2e_test"

# `highball doctor`: what it lists, and how it ends.
class DoctorTest < E2ETest
  WELL = "run ->(_env) { [200, {}, [\"it runs\"]] }\n"

  def test_an_application_that_is_well
    output, ended = doctor(folder_with("config.ru" => WELL))
    assert_predicate ended, :success?, output
    assert_match(/^ok .*application: Rack/, output)
    assert_match(/^ok .*preparing to fork/, output)
    refute_match(/warning|FAILED/, output)
  end

  # Files that have no effect, or start another server.
  def test_files_of_other_servers
    app = folder_with("config.ru" => WELL, "Passengerfile.json" => "{}", "public/.htaccess" => "Deny from all\n",
                      "Procfile" => "web: bundle exec puma\n",
                      "Dockerfile" => "CMD [\"./bin/thrust\", \"./bin/rails\", \"server\"]\n")
    File.mkfifo(File.join(app, "falcon.rb"))
    File.symlink("/etc/hostname", File.join(app, "thin.yml"))
    output, ended = doctor(app)
    assert_predicate ended, :success?, output
    assert_match(%r{^warning +other_server: Passengerfile\.json is Passenger's.*\n +what to do: .*/passenger\.md},
                 output)
    assert_match(/^warning +other_server: Procfile starts Puma, and not Highball\n +what to do: Write: web:/, output)
    assert_match(%r{^warning +other_server: Dockerfile starts Thruster.*\n +what to do: .*/thruster\.md}, output)
    assert_match(%r{^ok +other_server: public/\.htaccess is Apache's}, output)
    refute_match(/falcon/, output)
  end

  def test_an_application_that_does_not_boot
    output, ended = doctor(folder_with("config.ru" => "raise 'no luck'\n"))
    refute_predicate ended, :success?
    assert_match(/^ok .*loading the gems/, output)
    assert_match(/^FAILED .*exception: loading the app failed: RuntimeError: no luck/, output)
    assert_match(/^> +1  raise 'no luck'/, output)
  end

  def test_what_is_not_fork_safe
    path = File.join(folder_with, "service.sock")
    UNIXServer.open(path) do
      app = folder_with("config.ru" => <<~RUBY)
        require "socket"
        THREAD = Thread.new { sleep }
        SERVICE = UNIXSocket.new("#{path}")
        #{WELL}
      RUBY
      checks = examine(app)
      thread = checks.fetch("thread_at_boot")
      assert_equal "#{File.realpath(app)}/config.ru:2", thread["at"]
      assert_match(/after_fork/, thread["remedy"])
      assert_includes checks.fetch("connection_at_boot")["what"], path
      served = serve(app)
      assert_match(/thread was started while the application was loaded.*cause=thread_at_boot/, served.log)
    end
  end

  def test_what_fails_later_in_production
    blog = copy_of_example("blog")
    change(blog, "config/environments/production.rb", /eager_load = true/, "eager_load = false")
    File.write(File.join(blog, "config/application.rb"), "\nRails.application.config.allow_concurrency = false\n",
               mode: "a")
    checks = examine(blog, "--threads", "64")
    assert_match(%r{config/environments/production\.rb:\d+\z}, checks.fetch("eager_load")["at"])
    assert_match(/64 threads/, checks.fetch("small_pool")["what"])
    assert_match(%r{config/application\.rb:\d+\z}, checks.fetch("one_at_a_time")["at"])
    assert_equal(%w[warning], checks.values_at("eager_load", "small_pool", "one_at_a_time").map do |one|
                                one["state"]
                              end.uniq)
  end

  def test_an_adapter_of_action_cable_that_reaches_one_worker
    blog = copy_of_example("blog")
    check = examine(blog, "-w", "2").fetch("cable_adapter")
    assert_equal "warning", check["state"]
    assert_match(/adapter async, .* Highball's adapter takes its place/, check["what"])
    assert_match(/adapter: highball/, check["remedy"])
    check = examine(blog, "-w", "2", "--cable", "off").fetch("cable_adapter")
    assert_match(/adapter async: .* clients of that worker alone/, check["what"])
    assert_match(/highball, or with several machines redis, solid_cable or postgresql/, check["remedy"])
    above, line = File.readlines(File.join(blog, "config/cable.yml"))[check["at"][/\d+\z/].to_i - 2, 2]
    assert_equal ["production:", "adapter: async"], [above.strip, line.strip]
    refute_includes examine(blog, "-w", "1").keys, "cable_adapter"
  end

  def test_sessions_that_other_machines_do_not_have
    app = folder_with("config.ru" => "require 'highball/session/pstore'\n" \
                                     "use Highball::Session::PStore, folder: \"\#{__dir__}/sessions\"\n" \
                                     "run ->(env) { [200, {}, []] }\n")
    agent = ["--agent-check", "127.0.0.1:#{free_port}"]
    check = examine(app, *agent).fetch("local_sessions")
    assert_equal ["warning", "config.ru:2"], [check["state"], File.basename(check["at"])]
    assert_match(%r{files in #{app}/sessions: with several machines}, check["what"])
    refute_includes examine(app).keys, "local_sessions"
  end

  def test_files_that_nothing_sends
    blog = copy_of_example("blog")
    change(blog, "config/environments/production.rb", /^end/,
           "  config.action_dispatch.x_sendfile_header = 'X-Sendfile'\nend")
    check = examine(blog).fetch("sendfile_header")
    assert_equal "warning", check["state"]
    assert_match(%r{config/environments/production\.rb:\d+\z}, check["at"])
    [%w[--sendfile storage], %w[--trusted-proxies 127.0.0.1]].each do |options|
      refute_includes examine(blog, *options).keys, "sendfile_header"
    end
  end

  def test_the_file_of_users
    app = folder_with("config.ru" => WELL, "weak" => "ann:{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk=\n", "bad" => "ann\n",
                      "good" => "ann:$apr1$xxxxxxxx$5E6rVEcMgzIE13Aa76L.I.\n")
    { "good" => "ok", "weak" => "warning" }.each do |name, state|
      assert_equal state, examine(app, "--basic-auth", File.join(app, name)).fetch("users")["state"], name
    end
    { "bad" => "line 1 is not NAME:HASH", "missing" => "does not exist" }.each do |name, why|
      output, ended = doctor(app, "--basic-auth", File.join(app, name))
      refute_predicate ended, :success?
      assert_match(/^FAILED .*users: .*#{name} cannot be used, so all requests would be refused: .*#{why}/, output)
    end
  end

  def test_a_port_in_use
    TCPServer.open("127.0.0.1", 0) do |taken|
      output, ended = HighballServer.run("doctor", "-b", "127.0.0.1", "-p", taken.addr[1].to_s,
                                         folder_with("config.ru" => WELL))
      refute_predicate ended, :success?
      assert_match(/^FAILED .*address_in_use: .*#{taken.addr[1]}/, output)
    end
  end

  private

  # Names the user, because doctor warns if root runs the tests and no user is named.
  def doctor(app, *options)
    serving = ["-e", "production", "-b", "127.0.0.1", "-p", "0", "--user", Process.uid.to_s]
    HighballServer.run("doctor", *serving, *options, app, within: 60)
  end

  # The checks by name.
  def examine(app, *options)
    output, ended = doctor(app, "--json", *options)
    assert_predicate ended, :success?, output
    JSON.parse(output[output.index("{\n")..]).fetch("checks").to_h { |check| [check["name"], check] }
  end

  def change(folder, file, from, to)
    path = File.join(folder, file)
    File.write(path, File.read(path).sub(from, to))
  end
end
