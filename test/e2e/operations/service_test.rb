# frozen_string_literal: true

require "shellwords"
require "socket"
require_relative "../../support/e2e_test"

# The unit that `highball config systemd` prints, run as systemd would: its commands, its environment, and the
# notifications.
class ServiceTest < E2ETest
  APP = "config.ru"

  def test_systemd_understands_it
    needs("systemd-analyze", "systemd")
    app = app_that_says("one")
    unit = File.join(folder_with, "blog.service")
    File.write(unit, printed(app, "-b", "unix:/run/blog/highball.sock", "-b", "127.0.0.1:80"))
    output, ended = Open3.capture2e("systemd-analyze", "verify", "--man=no", unit)
    ours = output.lines.grep(/blog\.service/)
    assert_predicate ended, :success?, output
    assert_empty ours
  end

  def test_it_starts_reloads_and_stops
    app = app_that_says("one")
    unit = printed(app, "-p", free_port.to_s, "-b", "127.0.0.1", "-w", "2", "--drain-timeout", "7s")
    assert_equal({ "Type" => "notify", "NotifyAccess" => "main", "KillMode" => "mixed", "TimeoutStopSec" => "17",
                   "OOMPolicy" => "continue" },
                 %w[Type NotifyAccess KillMode TimeoutStopSec OOMPolicy]
                   .to_h { |name| [name, settings(unit, name).first] })
    server, systemd = start(app, unit)
    assert_equal "READY=1\nSTATUS=Serving", systemd.recv(100)
    assert_equal "one", server.get("/").body
    write(app, "two")
    assert system(environment(unit, app), *Shellwords.split(settings(unit, "ExecReload").first), out: File::NULL)
    assert_equal "two", server.get("/").body
    assert_predicate server.stop(settings(unit, "KillSignal").first), :success?
  end

  def test_it_reloads_what_the_link_leads_to_by_then
    releases = %w[one two].map { |word| app_that_says(word) }
    current = File.join(folder_with, "current")
    File.symlink(releases.first, current)
    unit = printed(current, "-p", free_port.to_s, "-b", "127.0.0.1")
    server, systemd = start(current, unit)
    assert_equal "READY=1\nSTATUS=Serving", systemd.recv(100)
    File.symlink(releases.last, "#{current}.new")
    File.rename("#{current}.new", current)
    reload = Shellwords.split(settings(unit, "ExecReload").first)
    output, ended = Open3.capture2e(environment(unit, current), *reload)
    assert_predicate ended, :success?, output
    assert_equal "two", server.get("/").body
  end

  def test_it_runs_as_the_owner_of_the_folder
    skip "needs root, to give folders away" unless Process.uid.zero?
    app = app_that_says("one")
    FileUtils.chown_R("daemon", nil, app)
    assert_equal ["daemon"], settings(printed(app), "User")
  end

  def test_it_runs_as_the_named_user
    unit = printed(app_that_says("one"), "--user", "games")
    assert_equal ["games"], settings(unit, "User")
    refute_match(/--user/, settings(unit, "ExecStart").first)
  end

  private

  def app_that_says(word)
    folder_with(APP => "").tap { |app| write(app, word) }
  end

  def write(app, word)
    File.write(File.join(app, APP), "run ->(_env) { [200, {}, ['#{word}']] }\n")
  end

  def printed(app, *options)
    highball("config", "systemd", *options, app)
  end

  def settings(unit, name)
    unit.scan(/^#{name}=(.*)$/).flatten
  end

  # The unit's variables, except for the folder that systemd would create.
  def environment(unit, app)
    set = settings(unit, "Environment").to_h { |text| text.delete('"').split("=", 2) }
    set.merge("XDG_RUNTIME_DIR" => app, "HIGHBALL_CONTROL" => nil)
  end

  # The server, and the socket for its notifications.
  def start(app, unit)
    path = File.join(folder_with, "notify")
    systemd = Socket.new(:UNIX, :DGRAM).tap { |socket| socket.bind(Addrinfo.unix(path)) }
    server = serve(app, command: Shellwords.split(settings(unit, "ExecStart").first),
                        env: environment(unit, app).merge("NOTIFY_SOCKET" => path))
    [server, systemd]
  end
end
