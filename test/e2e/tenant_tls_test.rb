# frozen_string_literal: true

require_relative "../support/tenants_test_case"
require_relative "../support/serves_tls"

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
