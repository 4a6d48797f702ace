# frozen_string_literal: true

require_relative "../../support/tenants_test_case"
require_relative "../../support/serves_tls"

# A server that root started for others serves HTTPS with a key that only root may read.
class TenantTlsTest < TenantsTestCase
  include ServesTls

  def test_the_key_is_roots_alone
    certificate, key, pair = roots_certificate
    configure_tenants(attacker_app, victim_app, top: tls_lines(certificate, key))
    server = serve_as_root(@place, "--bind", "tls://127.0.0.1:0")
    port = tls_port(server)
    assert_served(port)
    # Neither the applications nor the server's user can read it.
    assert_equal "Errno::EACCES", facts(server, { "Host" => HOSTS[ATTACKER] }, read: key)["read"]
    now = roots_certificate.last.certificate.serial
    refute_equal pair.certificate.serial, now
    server.signal("HUP")
    wait_for("the new certificate") { serial_for(port, HOSTS[VICTIM]) == now }
    File.write(certificate, "")
    server.signal("HUP")
    wait_for("status") { server_status(server).dig("tls", "problem")&.include?("is empty") }
    assert_served(port)
  end

  def test_changes_are_served_without_a_signal
    server, key = serve_and_watch
    port = tls_port(server)
    now = await_new_certificate(port)
    # The key of another one: what was served goes on, and the log has it once, also after HUP.
    File.write(key, TlsFiles.ec_key.to_pem, perm: 0o600)
    wait_for("the report", within: 20) { problem(server)&.include?("is not the key of") }
    assert_served(port)
    assert_equal now, serial_for(port, HOSTS[VICTIM])
    before = watchers(server)
    server.signal("HUP")
    wait_for("another process that watches") { watchers(server).one? && watchers(server) != before }
    assert_equal 1, server.log.scan("cannot load the new certificate: keeping the old one").length
    await_new_certificate(port)
    assert_nil problem(server)
  end

  # It ends with the server, and does not keep it from ending; if it is killed, HUP starts another.
  def test_the_process_that_watches
    server, = serve_and_watch
    before = watchers(server)
    Process.kill("KILL", *before)
    wait_for("the warning") { server.log.include?("does not notice changed certificates") }
    5.times { server.signal("HUP") }
    wait_for("another one") { watchers(server).one? && watchers(server) != before }
    await_new_certificate(tls_port(server))
    assert_served(tls_port(server))
    assert_predicate server.stop(within: 10), :success?
  end

  def test_a_bad_file_is_reported_at_the_start
    certificate, key, = roots_certificate
    File.write(key, "", perm: 0o600)
    configure_tenants(attacker_app, victim_app, top: tls_lines(certificate, key))
    output, ended = HighballServer.run("serve", "--bind", "tls://127.0.0.1:0", "-c",
                                       File.join(@place, "highball.toml"), env: env)
    refute_predicate ended, :success?
    assert_match(/#{key} is empty: write the certificate and its key again/, output)
  end

  private

  # A server beside which a process watches the files, and the file of the key.
  def serve_and_watch
    certificate, key, = roots_certificate
    configure_tenants(attacker_app, victim_app, top: tls_lines(certificate, key))
    server = serve_as_root(@place, "--bind", "tls://127.0.0.1:0")
    wait_for("the process that watches") { watchers(server).one? }
    [server, key]
  end

  def await_new_certificate(port)
    now = roots_certificate.last.certificate.serial
    wait_for("the new certificate", within: 20) { serial_for(port, HOSTS[VICTIM]) == now }
    now
  end

  def problem(server) = server_status(server).dig("tls", "problem")

  def watchers(server)
    OwnProcesses.below(server.pid).select { |pid| OwnProcesses.role(pid) == :certificates }
  end

  def roots_certificate
    folder = File.join(@place, "tls").tap { |path| FileUtils.mkdir_p(path, mode: 0o700) }
    certificate_for(*HOSTS.values, folder: folder)
  end

  def tls_lines(certificate, key)
    "tls_certificate = '#{certificate}'\ntls_key = '#{key}'\n"
  end

  def assert_served(port)
    HOSTS.each_value do |host|
      connect_tls(port, host: host) { |client| assert_equal 200, client.get("/", { "Host" => host }).status }
    end
  end
end
