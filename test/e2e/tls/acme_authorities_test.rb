# frozen_string_literal: true

require_relative "../../support/acme_test_case"

# Automatic certificates: authorities that are slow, refuse, suggest times, want accounts, or look at the DNS.
class AcmeAuthoritiesTest < AcmeTestCase
  def test_an_authority_that_limits_the_rate
    @double = AcmeDouble.new(@pebble)
    @double.refuse(429, "Retry-After" => "7200")
    server = serve_domains(HOST)
    domain = problem_of(server)
    assert_match(/the authority says: status 429/, domain["problem"])
    assert_includes 7100..7200, domain["next_at"] - Time.now.to_i
    asked = @double.requests
    stop_servers
    assert_start_waits(domain, asked)

    # What is damaged does not count.
    attempts = Dir[File.join(@state, "attempts", "*", "#{HOST}.json")]
    assert_equal([0o600], attempts.map { |path| File.stat(path).mode & 0o777 })
    File.write(attempts.first, "{")
    server = serve_domains(HOST)
    wait_for("another request") { @double.requests > asked }
    assert_match(/record of failed attempts is damaged/, server.log)
  end

  def test_an_authority_that_never_answers
    long
    @pebble = AcmeAuthority.new(@authority_folder, http_port: @http, valid_for: VALID_FOR).start
    @double = AcmeDouble.new(@pebble)
    server = serve_domains(HOST)
    wait_for("a certificate") { https_body(HOST) }
    serial = serial_for(@https, HOST)
    @double.be_silent
    domain = problem_of(server, within: 60)
    assert_match(/it has not answered within 15 s/, domain["problem"])
    assert_equal serial, serial_for(@https, HOST)
  end

  def test_an_authority_that_suggests_when_to_renew
    @pebble.start
    @double = AcmeDouble.new(@pebble)
    from = Time.now + (50 * TlsFiles::DAY)
    @double.suggest(from, from + TlsFiles::DAY)
    server = serve_domains(HOST)
    wait_for("a certificate") { https_body(HOST) }
    serial = serial_for(@https, HOST)
    wait_for("the suggestion") do
      (from.to_i..from.to_i + TlsFiles::DAY).cover?(server.status["tls"]["domains"].first["next_at"])
    end
    stop_servers

    @double.suggest(Time.now - TlsFiles::DAY, Time.now - 60) # as after certificates were issued wrongly
    serve_domains(HOST)
    wait_for("another certificate") { serial_for(@https, HOST) != serial }
    assert_equal "https #{HOST}:#{@https}", https_body(HOST)
  end

  def test_an_authority_for_its_own_accounts
    key = ["secret of the account" * 2].pack("m0")
    accounts = { "kid-1" => key.tr("+/", "-_") }
    @pebble = AcmeAuthority.new(@authority_folder, http_port: @http, external_accounts: accounts).start
    assert_match(/acme_eab_kid/, problem_of(serve_domains(HOST))["remedy"])
    stop_servers
    FileUtils.rm_r(File.join(@state, "attempts"))

    file = File.join(folder_with("eab.key" => "#{key}\n"), "eab.key")
    options = ["--acme-eab-kid", "kid-1", "--acme-eab-key-file", file]
    server = serve_domains(HOST, extra: options)
    wait_for("a certificate") { https_body(HOST) }
    output, = HighballServer.run("doctor", *doctor_options(*options))
    [output, server.log, server.status.to_s, *Dir[File.join(@state, "**/*.json")].map { |path| File.read(path) }]
      .each { |text| refute_includes text, key[0, 12] }
  end

  # A program makes the entries in the DNS, for a name with `*` too. The first hangs, and holds up no other.
  def test_names_in_the_dns
    @pebble = AcmeAuthority.new(@authority_folder, http_port: 1).start
    hook, calls = dns_hook
    server = serve_domains("*.#{HOST}", "broken.test", "*.aslow.test", extra: ["--acme-dns-hook", hook])
    wait_for("a certificate") { https_body("one.#{HOST}") }
    assert_equal "https two.#{HOST}:#{@https}", https_body("two.#{HOST}")
    wait_for("the end of the entry") { calls.call.include?(["cleanup", "_acme-challenge.#{HOST}"]) }
    wait_for("the slow one") { calls.call.include?(["present", "_acme-challenge.aslow.test"]) }
    broken = wait_for("a problem") do
      server.status["tls"]["domains"].find { |one| one["name"] == "broken.test" && one["problem"] }
    end
    assert_match(/acme_dns_hook.*present _acme-challenge.broken.test has failed \(status 3\): no such zone/,
                 broken["problem"])
    assert_includes calls.call, ["cleanup", "_acme-challenge.broken.test"]
    assert_equal ["_.#{HOST}.pem"], Dir.children(File.dirname(kept("_.#{HOST}")))
  end

  private

  # A new start knows what has failed, and does not ask. `doctor` knows it, too.
  def assert_start_waits(domain, asked)
    again = problem_of(serve_domains(HOST))
    assert_equal domain.values_at("problem", "failures"), again.values_at("problem", "failures")
    assert_in_delta domain["next_at"], again["next_at"], 1
    assert_equal asked, @double.requests
    output, = HighballServer.run("doctor", *doctor_options)
    assert_match(/warning +domain: #{HOST}: .*status 429/, output)
    assert_match(/what to do: .*attempts/, output)
    stop_servers
  end

  def doctor_options(*extra) = ["-e", "production", *acme_options(HOST), *extra, folder_with("config.ru" => APP)]

  # A program that makes entries for names that are neither slow nor broken, and what it was called for.
  def dns_hook
    folder = folder_with
    calls = File.join(folder, "calls")
    path = File.join(folder, "hook")
    File.write(path, <<~SHELL)
      #!/bin/sh
      echo "$1 $2" >> #{calls}
      case $1-$2 in
        present-*slow*) exec sleep 60 ;;
        present-*broken*) echo no such zone; exit 3 ;;
        present-*) data='{"host":"'$2'.","value":"'$3'"}'; path=set-txt ;;
        *) data='{"host":"'$2'."}'; path=clear-txt ;;
      esac
      exec curl -sS --fail --data "$data" #{@pebble.dns}/$path
    SHELL
    File.chmod(0o755, path)
    [path, -> { File.exist?(calls) ? File.readlines(calls).map(&:split) : [] }]
  end
end
