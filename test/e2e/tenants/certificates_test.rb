# frozen_string_literal: true

require "fcntl"
require_relative "../../support/tenants_test_case"
require_relative "../../support/serves_tls"
require_relative "../../support/fuse_folder"

# Certificates of applications of different users, whom a tenant attacks with its files. The server was started by root.
class TenantCertificatesTest < TenantsTestCase
  include ServesTls

  # A file of others that the tenant names itself is not looked at.
  def test_a_tenant_names_no_files
    { @root_file => "tls_certificate", "/etc/shadow" => "tls_client_ca",
      victims_pair.first => "tls_certificate" }.each do |file, option|
      attacker = attacker_app("config/highball.toml" => "#{option} = '#{file}'\n")
      server = serve_with_tls(attacker, victim_app)
      assert_match(/`#{option}` decides what Highball does with its own rights/, reports(server))
      refute_includes reports(server), SECRET
      assert_served(VICTIM)
      server.stop
    end
  end

  # Root's table names a file in the tenant's folder, and the tenant has it lead to what only others may read.
  def test_links_lead_a_tenant_to_nothing_new
    pair = victims_pair
    attacker, lines = with_own_files
    [[@root_file] * 2, ["/etc/shadow"] * 2, pair.take(2), ["/proc/self/mem", "/dev/zero"]].each do |certificate, key|
      link(attacker, certificate, key)
      server = serve_with_tls(attacker, victim_app, entries: { ATTACKER => lines })
      assert_match(/the application has no certificate/, server.log)
      refute_includes reports(server), SECRET
      refute_includes reports(server), pair.last.key_pem.lines[1].strip
      # The server's, for all hosts.
      assert_equal [@serial] * 2, serials
      server.stop
    end
  end

  def test_a_tenants_own_pair_counts_for_its_hosts_alone
    attacker, lines = with_own_files
    serial = put_pair(attacker, *HOSTS.values)
    server = serve_with_tls(attacker, victim_app, entries: { ATTACKER => lines })
    assert_equal [serial, @serial], serials
    assert_served(ATTACKER)
    # A pipe, and then nothing.
    as_attacker do
      File.unlink(File.join(attacker, "own.pem"))
      File.mkfifo(File.join(attacker, "own.pem"))
    end
    server.signal("HUP")
    wait_for("the report") { reports(server).include?("it is not a regular file") }
    assert_equal [serial, @serial], serials
    again = put_pair(attacker, *HOSTS.values)
    server.signal("HUP")
    wait_for("the new pair") { serial_for(@port, HOSTS[ATTACKER]) == again }
    assert_equal @serial, serial_for(@port, HOSTS[VICTIM])
  end

  # A process with a lease makes others wait that open the file.
  def test_a_lease_holds_up_nothing
    attacker, lines = with_own_files
    serial = put_pair(attacker, *HOSTS.values)
    server = serve_with_tls(attacker, victim_app, entries: { ATTACKER => lines })
    holding_lease(File.join(attacker, "own.key")) do
      server.signal("HUP")
      wait_for("the report", within: 20) { server.log.match?(/own\.key: a process holds a lease on it/) }
      assert_equal [serial, @serial], serials
      assert_served(VICTIM)
    end
  end

  # Root's table names the tenant's file of authorities. What the tenant makes of it keeps out its own clients alone.
  def test_a_tenants_authorities_keep_out_its_own_clients_alone
    attacker = attacker_app
    file = File.join(attacker, "clients.pem")
    clients = TlsFiles.authority("Clients")
    alice = TlsFiles.issue([], by: clients, name: "alice")
    put = lambda do |make|
      as_attacker do
        FileUtils.rm_f(file)
        make.call
      end
    end
    put.call(-> { File.write(file, clients.pem) })
    server = serve_with_tls(attacker, victim_app, entries: { ATTACKER => "tls_client_ca = '#{file}'\n" })
    assert_served(ATTACKER, client: alice)
    { "it is not a regular file" => -> { File.mkfifo(file) },
      "Permission denied" => -> { File.symlink(@root_file, file) },
      "larger than 1 MB" => -> { File.write(file, "x" * 2_000_000) } }.each do |problem, make|
      put.call(make)
      server.signal("HUP")
      wait_for("the report of #{problem}", within: 20) { reports(server).include?(problem) }
      refute_includes reports(server), SECRET
      assert_served(VICTIM)
      assert_served(ATTACKER, client: alice) # by the authorities from before
    end
    server.stop
    server = serve_as_root(@place, "--bind", "tls://127.0.0.1:0")
    @port = tls_port(server)
    assert_served(VICTIM)
    assert_raises(OpenSSL::SSL::SSLError, Errno::ECONNRESET, EOFError) { assert_served(ATTACKER, client: alice) }
  end

  # Also while it watches files, of which there are others.
  def test_a_disk_that_does_not_answer_holds_up_its_owner_alone
    attacker, lines = with_own_files("disk/")
    disk_folder = File.join(attacker, "disk").tap { |path| Dir.mkdir(path) }
    pair = TlsFiles.issue([HOSTS[ATTACKER]], by: authority)
    FuseFolder.mounted(disk_folder, { "own.pem" => pair.pem, "own.key" => pair.key_pem }) do |disk|
      server = serve_with_tls(attacker, victim_app, entries: { ATTACKER => lines })
      assert_equal [pair.certificate.serial, @serial], serials
      disk.ignore(:lookup, :getattr, :open, :read)
      wait_for("the look at it", within: 20) { disk.unanswered.positive? }
      renew_servers_pair
      wait_for("the new certificate", within: 20) { serial_for(@port, HOSTS[VICTIM]) == @serial }
      assert_predicate server.stop, :success?
    end
  rescue FuseFolder::Unavailable => e
    skip "no file systems for tests: #{e.message}"
  end

  private

  # Another process of the attacker's has a write lease on the file (fcntl(2), F_SETLEASE) while the block runs.
  def holding_lease(path)
    reader, writer = IO.pipe
    user = Etc.getpwnam(ATTACKER)
    holder = fork do
      Process::UID.change_privilege(user.uid)
      trap("IO") { nil } # the kernel's request to give it back
      file = File.open(path, "r+")
      file.fcntl(1024, Fcntl::F_WRLCK)
      writer.puts "leased"
      sleep
    rescue SystemCallError => e
      writer.puts e.message
    ensure
      exit!
    end
    writer.close
    problem = reader.gets
    skip "this file system has no leases: #{problem}" if problem != "leased\n"
    yield
  ensure
    HighballServer.kill(holder)
    Process.wait(holder)
  end

  def renew_servers_pair
    certificate, key, pair = certificate_for(*HOSTS.values, folder: File.join(@place, "tls"))
    @serial = pair.certificate.serial
    [certificate, key]
  end

  # What could be seen by anyone who reads logs, or the status.
  def reports(server) = server.log + server_status(server).to_json

  def victims_pair
    keys = File.join(@place, "keys")
    FileUtils.mkdir_p(keys, mode: 0o700)
    @victims_pair ||= certificate_for(*HOSTS.values, folder: keys)
  end

  # An application of the attacker's, and lines of root's entry that name files in it.
  def with_own_files(folder = "")
    attacker = attacker_app
    own = File.join(attacker, folder, "own")
    [attacker, "tls_certificate = '#{own}.pem'\ntls_key = '#{own}.key'\n"]
  end

  def link(app, *targets)
    as_attacker do
      %w[own.pem own.key].zip(targets) { |name, target| FileUtils.ln_sf(target, File.join(app, name)) }
    end
  end

  def put_pair(app, *hosts)
    pair = TlsFiles.issue(hosts, by: authority)
    as_attacker do
      { "own.pem" => pair.pem, "own.key" => pair.key_pem }.each do |name, text|
        FileUtils.rm_f(File.join(app, name))
        File.write(File.join(app, name), text, perm: 0o600)
      end
    end
    pair.certificate.serial
  end

  # Of what clients get for the two.
  def serials = HOSTS.values.map { |host| serial_for(@port, host) }

  def serve_with_tls(attacker, victim, **options)
    FileUtils.mkdir_p(File.join(@place, "tls"), mode: 0o700)
    certificate, key = renew_servers_pair
    top = "tls_certificate = '#{certificate}'\ntls_key = '#{key}'\n"
    configure_tenants(attacker, victim, top: top, **options)
    server = serve_as_root(@place, "--bind", "tls://127.0.0.1:0")
    @port = tls_port(server)
    server
  end

  def assert_served(user, **options)
    host = HOSTS.fetch(user)
    connect_tls(@port, host: host, **options) { |client| assert_equal 200, client.get("/", { "Host" => host }).status }
  end
end
