# frozen_string_literal: true

require "openssl"

# Certificates and keys for tests: an authority, and what it issues.
module TlsFiles
  DAY = 86_400

  # A certificate and its key.
  Pair = Struct.new(:certificate, :key) do
    def pem = certificate.to_pem
    def key_pem = key.respond_to?(:private_to_pem) ? key.private_to_pem : key.to_pem
  end

  module_function

  def authority(name = "Test Authority", by: nil)
    issue([], name: name, by: by) do |certificate, factory|
      certificate.add_extension(factory.create_extension("basicConstraints", "CA:TRUE", true))
      certificate.add_extension(factory.create_extension("keyUsage", "keyCertSign,cRLSign", true))
      certificate.add_extension(factory.create_extension("subjectKeyIdentifier", "hash"))
    end
  end

  # For these hosts; issued `by` a pair, or self-signed.
  def issue(hosts, by: nil, name: hosts.first, from: Time.now - DAY, to: Time.now + (30 * DAY), key: ec_key)
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = rand(1 << 62)
    certificate.subject = OpenSSL::X509::Name.new([["CN", name]])
    certificate.issuer = by ? by.certificate.subject : certificate.subject
    certificate.public_key = key
    certificate.not_before = from
    certificate.not_after = to
    factory = OpenSSL::X509::ExtensionFactory.new(by&.certificate || certificate, certificate)
    unless hosts.empty?
      names = hosts.map { |host| "DNS:#{host}" }.join(",")
      certificate.add_extension(factory.create_extension("subjectAltName", names))
    end
    yield certificate, factory if block_given?
    certificate.sign(by ? by.key : key, OpenSSL::Digest.new("SHA256"))
    Pair.new(certificate, key)
  end

  def ec_key = OpenSSL::PKey::EC.generate("prime256v1")
end
