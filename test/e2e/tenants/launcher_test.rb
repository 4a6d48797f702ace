# frozen_string_literal: true

require_relative "../../support/spawner_test_case"

# What a server starts in a hot restart that a script of root's has started for applications of others.
class TenantLauncherTest < SpawnerTestCase
  # Runs the program that stands here by now.
  LAUNCHER = <<~'SH'
    #!/bin/sh
    HIGHBALL_LAUNCHER=$(readlink -f "$0")
    export HIGHBALL_LAUNCHER
    exec "$(dirname "$0")/current/highball" "$@"
  SH

  def setup
    super
    @launcher = File.join(@place, "highball")
    File.write(@launcher, LAUNCHER, perm: 0o755)
    install "1.0"
    @path = File.join(@place, "server.sock")
    configure_tenants(attacker_app, victim_app, top: "bind = ['unix:#{@path}']\ndrain_timeout = '1s'")
    command = [@launcher, "-e", "production", "-w", "1"]
    @server = HighballServer.new(@place, command: command, env: root_env, bind: @path).tap { |one| @servers << one }
    wait_for("the server", within: HighballServer::SERVES_WITHIN) { @server.log.include?("serving on") }
  end

  def test_a_hot_restart_starts_the_launcher_of_roots
    install "2.0"
    output, ended = upgrade
    assert_predicate ended, :success?, output
    running = File.readlink("/proc/#{output[/\(pid (\d+)\)/, 1]}/exe")
    assert_equal File.join(@place, "2.0/highball"), running
    assert_equal 200, HttpConnection.unix(@path).get("/", { "Host" => HOSTS[VICTIM] }).status
  end

  def test_a_launcher_of_a_tenants_is_not_started
    FileUtils.chown(ATTACKER, nil, @launcher)
    output, ended = upgrade
    refute_predicate ended, :success?, output
    assert_match(/root does not start #{@launcher}, as /, output)
    assert_equal 200, HttpConnection.unix(@path).get("/", { "Host" => HOSTS[VICTIM] }).status
  end

  private

  def install(version)
    folder = File.join(@place, version)
    FileUtils.mkdir_p(folder)
    FileUtils.cp(HighballServer::BINARY, folder)
    current = File.join(@place, "current")
    File.symlink(folder, "#{current}.new")
    File.rename("#{current}.new", current)
  end

  def upgrade = HighballServer.run("upgrade", env: server_env, within: 60)
end
