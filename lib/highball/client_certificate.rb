# frozen_string_literal: true

module Highball
  # A client's certificate in an env. The front has verified it, and hands it on in PEM (SSL_CLIENT_CERT). This adds
  # what applications expect beside it, by the names of Puma and Apache.
  module ClientCertificate
    CERTIFICATE = "SSL_CLIENT_CERT"

    module_function

    # Without a certificate, nothing is added. OpenSSL has been loaded.
    def describe(env)
      pem = env[CERTIFICATE] or return
      certificate = OpenSSL::X509::Certificate.new(pem)
      env["puma.peercert"] = certificate
      env["SSL_CLIENT_S_DN"] = certificate.subject.to_s(OpenSSL::X509::Name::RFC2253)
      env["SSL_CLIENT_I_DN"] = certificate.issuer.to_s(OpenSSL::X509::Name::RFC2253)
      env["SSL_CLIENT_M_SERIAL"] = certificate.serial.to_s(16)
      env["SSL_CLIENT_FINGERPRINT_SHA256"] = OpenSSL::Digest.hexdigest("SHA256", certificate.to_der)
    end
  end
end
