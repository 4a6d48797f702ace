# frozen_string_literal: true

require_relative "../../support/tls_test_case"

# Files of certificates: what is wrong with them, and how they are replaced while the server runs.
class TlsCertificatesTest < TlsTestCase
  APP = 'run ->(_env) { [200, { "content-type" => "text/plain" }, ["hello"]] }'

  # --- at the start

  def test_a_pair_that_does_not_match
    certificate, = certificate_for("localhost")
    _, key, = certificate_for("localhost")
    refused([certificate, key], "#{key} is not the key of #{certificate}")
  end

  def test_files_that_cannot_be_read
    certificate, key, = certificate_for("localhost")
    missing = File.join(folder_with, "missing.pem")
    refused([missing, key], "cannot read #{missing}: No such file", "Look at the path in `tls_certificate`")
    refused([certificate, File.dirname(key)], "it is not a regular file")
    refused(["/dev/zero", key], "cannot read /dev/zero: ")
    pipe = File.join(folder_with, "pipe")
    File.mkfifo(pipe)
    refused([certificate, pipe], "it is not a regular file")
    refused([file("x" * 2_000_000), key], "it is larger than 1 MB")
  end

  def test_files_with_something_else
    certificate, key, pair = certificate_for("localhost")
    refused([file(""), key], "is empty")
    refused([certificate, file("\n")], "is empty")
    refused([key, key], "#{key} has no certificate, but a private key")
    refused([certificate, certificate], "#{certificate} has no private key, but a certificate")
    refused([file(pair.certificate.to_der), key], "has no certificate, but DER: `openssl x509 -inform der`")
    refused([file(pair.pem[0, 300]), key], "it is damaged or cut off")
    refused([certificate, file(pair.key_pem[0, 100])], "it is damaged or cut off")
    refused([file("hello"), key], "has no certificate, but something else")
  end

  def test_an_encrypted_key
    rsa = OpenSSL::PKey::RSA.new(2048)
    certificate, = certificate_for("localhost", key: rsa)
    old = file(rsa.to_pem(OpenSSL::Cipher.new("aes-128-cbc"), "secret"))
    new = file(rsa.private_to_pem(OpenSSL::Cipher.new("aes-128-cbc"), "secret"))
    [old, new].each do |key|
      refused([certificate, key], "#{key} has a key that is encrypted with a passphrase", "openssl pkey -in #{key}")
    end
  end

  def test_an_authority_before_the_certificate
    certificate, key, pair = certificate_for("localhost")
    File.write(certificate, authority.pem + pair.pem)
    refused([certificate, key], "does not begin with the server's certificate, which is number 2 in the file")
  end

  def test_what_is_missing
    refused([], "needs a certificate: name its file with `tls_certificate`")
    certificate, key, = certificate_for("localhost")
    output, = HighballServer.run("serve", "--bind", "tls://127.0.0.1:0", "--tls-certificate", certificate,
                                 "--tls-key", key, "--tls-key", key, app)
    assert_match(/`tls_certificate` names 1 files and `tls_key` 2/, output)
  end

  def test_keys_are_in_no_message
    certificate, _, pair = certificate_for("localhost")
    damaged = file(pair.key_pem.sub("PRIVATE KEY-----\n", "PRIVATE KEY-----\n*"))
    output = refused([certificate, damaged], "it is damaged")
    secret = pair.key_pem.lines[1].strip
    refute_includes output, secret[0, 16]
    both = file(pair.pem + pair.key_pem)
    server = serve_tls(app, pairs: [[both, both]])
    refute_includes server.log + server.status.to_json, secret[0, 16]
  end

  # As other web servers do: an old certificate is better than no server.
  def test_a_certificate_that_browsers_refuse_is_served_with_a_warning
    day = TlsFiles::DAY
    { "has expired on" => { to: Time.now - day, from: Time.now - (2 * day) },
      "is not valid before" => { from: Time.now + day } }.each do |words, dates|
      pair = certificate_for("localhost", **dates)
      server = serve_tls(app, pairs: [pair])
      assert_equal pair.last.certificate.serial, serial_for(tls_port(server), "localhost")
      assert_match(/flaw in a served certificate.*#{pair.first}.*it #{words}/m, server.log)
      output, ended = HighballServer.run("doctor", *tls_options([pair]), app)
      assert_match(/FAILED +certificate: .*#{words}/, output)
      refute_predicate ended, :success?
    end
  end

  def test_other_flaws
    certificate, key, pair = certificate_for("localhost")
    File.write(certificate, pair.pem + TlsFiles.authority("Another").pem)
    File.chmod(0o644, key)
    output, = HighballServer.run("doctor", *tls_options([[certificate, key]]), app)
    assert_match(/warning +certificate: .*its 2\. certificate has not issued the one before it/, output)
    assert_match(/warning +certificate: .*all users of this machine can read its key: chmod 600 #{key}/, output)
    output, = HighballServer.run("doctor", *tls_options([certificate_for("blog.test")]), app)
    assert_match(/ok +certificate: .* is for blog.test/, output)
  end

  # --- while the server runs

  def test_new_files_after_hangup
    folder = folder_with
    pair = certificate_for("localhost", folder: folder)
    server = serve_tls(app, pairs: [pair])
    port = tls_port(server)
    connect_tls(port) do |client|
      assert_equal 200, client.get("/").status
      now = certificate_for("localhost", folder: folder).last.certificate.serial
      server.signal("HUP")
      wait_for("the new certificate") { serial_for(port, "localhost") == now }
      assert_equal 200, client.get("/").status # of the connection from before
    end
  end

  def test_new_files_without_a_signal
    folder = folder_with
    pair = certificate_for("localhost", folder: folder)
    server = serve_tls(app, pairs: [pair])
    now = certificate_for("localhost", folder: folder).last.certificate.serial
    wait_for("the new certificate", within: 20) { serial_for(tls_port(server), "localhost") == now }
    assert_match(/certificates reloaded: new connections use them/, server.log)
  end

  def test_bad_new_files_are_not_used
    folder = folder_with
    certificate, key, pair = certificate_for("localhost", folder: folder)
    server = serve_tls(app, pairs: [[certificate, key]])
    port = tls_port(server)
    expired = TlsFiles.issue(["localhost"], by: authority, to: Time.now - 60, key: pair.key)
    { "is damaged or cut off" => pair.pem[0, 200], "is empty" => "", "has expired on" => expired.pem,
      "is not the key of" => TlsFiles.issue(["localhost"]).pem }.each do |words, text|
      replace(server, certificate, text)
      wait_for("status with #{words}") { server.status.dig("tls", "problem")&.include?(words) }
      assert_match(/cannot load the new certificate: keeping the old one.*#{words}/m, server.log)
      connect_tls(port) { |client| assert_equal 200, client.get("/").status }
      assert_equal pair.certificate.serial, serial_for(port, "localhost")
    end
    replace(server, certificate, pair.pem)
    wait_for("no problem") { server.status.dig("tls", "problem").nil? }
  end

  def test_one_more_certificate_after_hangup
    folder = folder_with
    first = certificate_for("one.test", folder: folder, name: "one")
    second = certificate_for("two.test", folder: folder, name: "two")
    one = app
    settings = ->(pairs) { "tls_certificate = #{pairs.map(&:first)}\ntls_key = #{pairs.map { |pair| pair[1] }}\n" }
    File.write(File.join(one, "highball.toml"), settings.call([first]))
    server = serve(one, "--bind", "tls://127.0.0.1:0")
    port = tls_port(server)
    assert_equal first.last.certificate.serial, serial_for(port, "two.test")
    File.write(File.join(one, "highball.toml"), settings.call([first, second]))
    server.signal("HUP")
    wait_for("the second certificate") { serial_for(port, "two.test") == second.last.certificate.serial }
    refute_match(/options of the server have changed/, server.log)
  end

  private

  def app = folder_with("config.ru" => APP)

  def file(bytes)
    File.join(folder_with, "file.pem").tap { |path| File.binwrite(path, bytes) }
  end

  def replace(server, file, text)
    File.write(file, text)
    server.signal("HUP")
  end

  # A start with these files ends with a message.
  def refused(files, *words)
    certificate, key = files
    options = [*("--tls-certificate" if certificate), *certificate, *("--tls-key" if key), *key]
    output = highball_fails("serve", "--bind", "tls://127.0.0.1:0", *options, app)
    words.each { |text| assert_includes output, text }
    output
  end
end
