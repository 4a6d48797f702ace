# frozen_string_literal: true

require "open3"
require_relative "../../support/tls_test_case"

# What programs that look for weaknesses find in a server with the default settings.
class TlsScannersTest < TlsTestCase
  # With the fields that Rails sends, and a body that is worth compressing.
  PAGE = <<~RUBY
    FIELDS = { "content-type" => "text/html", "x-frame-options" => "SAMEORIGIN", "x-content-type-options" => "nosniff",
               "referrer-policy" => "strict-origin-when-cross-origin", "content-security-policy" => "default-src 'self'" }
    run ->(_env) { [200, FIELDS.dup, ["<p>Hello</p>" * 1000]] }
  RUBY
  # Protocols, the server's defaults and preferences, forward secrecy, standard cipher lists, fields, vulnerabilities.
  TESTSSL = %w[-p -S -P -f -s -h -U --warnings batch --color 0 --quiet].freeze
  HARMLESS = %w[OK INFO LOW WARN].freeze
  # testssl says so of each server that compresses. A page is compressed only if it has no secrets, or no other site has
  # caused the request (docs/compression.md).
  COMPRESSES = ["BREACH MEDIUM"].freeze
  RENEWED_EVERY = 90 * TlsFiles::DAY

  def setup
    super
    long
    certificate = certificate_for("localhost", to: Time.now + RENEWED_EVERY - TlsFiles::DAY) do |issued, factory|
      issued.add_extension(factory.create_extension("extendedKeyUsage", "serverAuth"))
      issued.add_extension(factory.create_extension("authorityKeyIdentifier", "keyid:always"))
      issued.add_extension(factory.create_extension("crlDistributionPoints", "URI:http://crl.test/list"))
    end
    @folder = folder_with("config.ru" => PAGE, "authority.pem" => authority.pem)
    @host = "localhost:#{tls_port(serve_tls(@folder, pairs: [certificate]))}"
  end

  def test_testssl
    needs("testssl", "testssl.sh")
    report = File.join(@folder, "report.json")
    run_scanner("testssl", *TESTSSL, "--add-ca", File.join(@folder, "authority.pem"), "--jsonfile", report, @host)
    findings = JSON.parse(File.read(report)).reject { |finding| HARMLESS.include?(finding["severity"]) }
    found = findings.map { |finding| finding.values_at("id", "severity").join(" ") }
    assert_equal COMPRESSES, found, findings.map { |finding| finding["finding"] }.join("\n")
  end

  # Mozilla's "intermediate" configuration.
  def test_sslyze
    needs("sslyze", "pip install sslyze")
    authorities = File.join(@folder, "authority.pem")
    printed = run_scanner("sslyze", "--certinfo_ca_file", authorities, "--mozilla_config=intermediate", @host)
    assert_match(/#{Regexp.escape(@host)}: OK - Compliant\./, printed)
  end

  private

  def run_scanner(*command)
    printed, status = Open3.capture2e("timeout", "300", *command)
    refute_nil status.exitstatus, printed
    printed
  end
end
