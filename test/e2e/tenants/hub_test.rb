# frozen_string_literal: true

# marks: root

require_relative "../../support/event_client"
require_relative "../../support/hub_app"
require_relative "../../support/tenants_test_case"

# Held responses and messages of applications that run as different users.
class TenantHubTest < TenantsTestCase
  CONFIG = { "config.ru" => HubApp::CONFIG }.freeze

  def setup
    super
    @server = serve_tenants(attacker_app(CONFIG), victim_app(CONFIG))
    @clients = HOSTS.transform_values { |host| EventClient.new(@server).open("Host" => host) }
  end

  def teardown
    @clients&.each_value(&:close)
    super
  end

  def test_each_publishes_to_its_own_clients
    HOSTS.each do |user, host|
      answer = @server.request("POST", "/publish", { "Host" => host }, "of #{user}")
      assert_equal 200, answer.status, answer.body
    end
    @clients.each { |user, client| assert_equal ["of #{user}"], client.read_events(1).data }
  end

  # The process of another user does not find the new server; the old one says where it is.
  def test_an_old_worker_publishes_after_a_hot_restart
    go = File.join(@place, "victim", "go")
    headers = { "Host" => HOSTS[VICTIM] }
    answers = Thread.new { @server.request("POST", "/publish?times=2&when=#{go}", headers, "%") }
    wait_for("the request to begin") { File.exist?("#{go}.begun") }
    highball("upgrade", *@server.which, env: server_env, within: 60)
    client = EventClient.new(@server).open(headers)
    File.write(go, "")
    assert_match(/\A\h{16}-\d+\z/, answers.value.body)
    assert_equal %w[0 1], client.read_events(2).data
  ensure
    client&.close
  end

  # Which Highball has not started: a console, a job, a script.
  def test_other_processes_of_the_user_publish
    publish = "print Highball.publish('ticks', 'from a script') rescue print $!.message"
    victim = File.join(@place, "victim")
    assert_match(/\A\h{16}-\d+\z/, script_of(VICTIM, publish, victim))
    assert_equal ["from a script"], @clients[VICTIM].read_events(1).data
    highball("upgrade", *@server.which, env: server_env, within: 60)
    assert_match(/\A\h{16}-\d+\z/, script_of(VICTIM, publish, victim))
    assert_match(/no Highball serves \S+ as this user/, script_of(ATTACKER, publish, victim))
  end

  # A neighbor makes the folders first where the address would be. (No other test has this user.)
  def test_folders_of_a_neighbor_are_not_used
    uid = Etc.getpwnam("news").uid
    places = %w[/dev/shm /tmp].map { |folder| "#{folder}/highball-hub-#{uid}" }
    as_attacker { places.each { |path| Dir.mkdir(path, 0o777) } }
    server = serve_as_root(app_of("news", CONFIG))
    wait_for("an error") { server.log.match?(/cannot publish messages.*no folder of user #{uid} alone/m) }
    places.each { |path| assert_empty Dir.children(path) }
    assert_equal "hello ", server.get("/").body
  ensure
    FileUtils.rm_rf(places)
  end

  def test_a_key_is_of_no_use_to_other_users
    name, key = ask_victim(@server, "/address").body.split("/", 2)
    own = ask_attacker(@server, "/address").body.split("/", 2).last
    as_attacker do
      assert_includes publish(name, key), "has this key"
      assert_includes publish(name, own.sub(/\A\d+/, key[/\A\d+/])), "has this key"
      assert_match(/\A\0..\h{16}-\d+\z/m, publish(name, own))
    end
    as_user("bin") { assert_empty publish(name, key) }
    @clients[VICTIM].read_some(0.3)
    assert_empty @clients[VICTIM].events
  end

  private

  # The output of this code, run by a user in this folder, or in the folder around it where the user may not enter.
  def script_of(user, code, folder)
    output, input = IO.pipe
    as_user(user) do
      Dir.chdir(folder) rescue Dir.chdir(File.dirname(folder)) # rubocop:disable Style/RescueModifier
      environment = { "HIGHBALL_CONTROL" => nil, "HIGHBALL_HUB" => nil, "XDG_RUNTIME_DIR" => nil }
      system(environment, RbConfig.ruby, "-I", lib, "-r", "highball", "-e", code, out: input, exception: true)
    end
    input.close
    output.read
  end

  # What a process gets for a message with this key.
  def publish(name, key)
    UNIXSocket.open("\0#{name}") do |socket|
      socket.write([key.bytesize].pack("L<"), key, [0, 5, 0, 6].pack("CL<3"), "ticksforged")
      socket.close_write
      socket.read
    end
  rescue Errno::ECONNRESET, Errno::EPIPE
    ""
  end
end
