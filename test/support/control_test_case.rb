# frozen_string_literal: true

require "open3"
require "socket"
require_relative "tenants_test_case"

# A test of control sockets between users: a server that the victim has started, commands of several users, and forged
# servers of the attacker's.
class ControlTestCase < TenantsTestCase
  # An answer of a forged server: a status without applications, to which the pid is added.
  STATUS = { "type" => "status", "pid" => 0, "version" => "0", "phase" => "serving", "uptime_seconds" => 1,
             "binds" => [], "ports" => [], "connections" => 0, "hijacked" => 0, "upgrade" => nil, "predecessor" => nil,
             "successor" => nil, "apps" => [] }.freeze

  APP = { "id" => 1, "name" => "app", "phase" => "serving", "hosts" => [], "prefix" => "", "url" => "", "app" => "/",
          "link" => "/", "environment" => "production", "user" => "games", "framework" => nil, "ruby" => nil,
          "generation" => 1, "restartable" => true, "mold" => nil, "workers_wanted" => 1, "workers" => [], "queue" => 0,
          "restarts" => [], "refork" => nil, "no_refork" => nil, "last_failure" => nil, "diagnosis" => nil }.freeze

  def setup
    super
    @binary = File.join(@place, "highball")
    FileUtils.cp(HighballServer::BINARY, @binary)
    File.chmod(0o755, @binary)
    @forgers = []
    @usual = "/tmp/highball-#{Etc.getpwnam(VICTIM).uid}"
    @further = "/dev/shm/highball-#{Etc.getpwnam(VICTIM).uid}"
    @attackers = "/tmp/highball-#{Etc.getpwnam(ATTACKER).uid}"
    remove_usual
  end

  def teardown
    @forgers&.each do |pid|
      HighballServer.kill(pid)
      Process.wait(pid)
    end
    super
    remove_usual if @usual
  end

  private

  def remove_usual
    [@usual, @further, @attackers].each { |path| File.symlink?(path) ? File.unlink(path) : FileUtils.rm_rf(path) }
  end

  def folder_of(user, name, mode = 0o755)
    File.join(@place, name).tap do |folder|
      Dir.mkdir(folder) unless File.directory?(folder)
      File.chmod(mode, folder)
      FileUtils.chown(user, nil, folder)
    end
  end

  # Runs a command as this user: [output, Process::Status].
  def command(user, *words, env: {})
    through = user == "root" ? [] : become(user)
    environment = HighballServer::ENVIRONMENT.merge("XDG_RUNTIME_DIR" => nil, "HIGHBALL_CONTROL" => nil).merge(env)
    output, ended = Open3.capture2e(environment, "timeout", "60", *through, @binary, *words, chdir: "/")
    [output.force_encoding("UTF-8"), ended]
  end

  def become(user) = ["setpriv", "--reuid=#{user}", "--regid=#{Etc.getpwnam(user).gid}", "--clear-groups", "--"]

  # A server that the victim has started. `through` is a command that starts it.
  def serve_as_victim(name = "victim", env: {}, through: [])
    app = app_of(VICTIM, { "config.ru" => FACTS }, "app-#{name}")
    options = %w[-b 127.0.0.1 -p 0 -e production -w 1]
    command = [*through, *become(VICTIM), @binary, "serve", *options, app]
    all = { "HIGHBALL_LIB" => lib, "XDG_RUNTIME_DIR" => nil, "HIGHBALL_CONTROL" => nil }.merge(env)
    HighballServer.new(app, command: command, env: all).tap do |server|
      @servers << server
      server.wait_until_serving
    end
  end

  # A server that root has started, with the application of the victim.
  def start_victim_as_root(env: {})
    start_many(victim_app, env: self.env.merge(env))
  end

  def assert_finds(server, env, as: VICTIM)
    output = nil
    wait_for("the instance", within: 20) do
      output, ended = command(as, "status", *server.which, env: env)
      ended.success?
    end
    assert_match(/\(pid #{server.pid}[,)]/, output)
  end

  # A process of the attacker's that listens there and answers with the block. It notes each request.
  def forge(path)
    folder = File.dirname(path)
    folder_of(ATTACKER, "notes")
    as_attacker { FileUtils.mkdir_p(folder) }
    notes = notes_path
    user = Etc.getpwnam(ATTACKER)
    @forgers << fork do
      Process.initgroups(ATTACKER, user.gid)
      Process::GID.change_privilege(user.gid)
      Process::UID.change_privilege(user.uid)
      listening = UNIXServer.new(path)
      File.chmod(0o600, path)
      loop do
        client = listening.accept
        # A command that only looks for servers closes the connection without a request.
        is_asked = client.wait_readable(10) && !client.recv(1, Socket::MSG_PEEK).to_s.empty?
        File.write(notes, "asked\n", mode: "a") if is_asked
        yield client, Process.pid
        client.close
      rescue SystemCallError, IOError
        next
      end
    ensure
      exit!(1)
    end
    wait_for("the forged socket") { File.socket?(path) && File.stat(path).mode & 0o777 == 0o600 }
    path
  end

  def notes_path = File.join(@place, "notes/asked")
  def asked = File.exist?(notes_path) ? File.readlines(notes_path) : []

  # A forged server of the attacker's, where its servers usually have their sockets.
  def forge_usual(&)
    forge("#{@attackers}/1.sock", &).tap { File.chmod(0o700, @attackers) }
  end

  # The forged control socket of a tenant.
  def forge_tenants(name = "forged", &) = forge(File.join(folder_of(ATTACKER, name), "control"), &)

  def assert_not_believed(path, expected)
    %w[status stop].each do |word|
      output, ended = command("root", word, env: { "HIGHBALL_CONTROL" => path })
      refute_predicate ended, :success?, output
      assert_match(expected, output)
      assert_match(/no Highball is running|gave no answer that can be used/, output)
    end
  end
end
