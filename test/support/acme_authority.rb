# frozen_string_literal: true

require "json"
require "net/http"
require_relative "deadline"
require_relative "free_port"
require_relative "process_facts"
require_relative "tls_files"

# An authority that issues certificates (pebble), and the DNS that it asks: every name is on this machine.
class AcmeAuthority
  # The certificate that vouches for the authority's own server, as a file.
  attr_reader :vouching_file
  # The certificate of that server, with its key.
  attr_reader :own

  # In this folder, which is there. The authority looks for names at these ports, and its certificates are valid for
  # this number of seconds. With external accounts ({"kid" => key}), it makes no others.
  def initialize(folder, http_port:, tls_port: 1, valid_for: 90 * TlsFiles::DAY, external_accounts: {})
    @folder = folder
    @settings = { "httpPort" => http_port, "tlsPort" => tls_port, "certificateValidityPeriod" => valid_for,
                  "externalAccountBindingRequired" => external_accounts.any?,
                  "externalAccountMACKeys" => external_accounts }
    choose_ports
  end

  def directory = "https://localhost:#{@port}/dir"

  # Where entries of the DNS are made: POST /set-txt, POST /clear-txt.
  def dns = "http://127.0.0.1:#{@dns_management}"

  # Starts it, with these settings of pebble's in its environment. It ends at once where another program has taken one
  # of its ports meanwhile: then it begins again with others.
  def start(**settings)
    @pids = [spawn_dns, spawn_pebble(settings)]
    Deadline.wait("the authority") do
      next [@port, @dns_management].all? { |port| FreePort.taken?(port) } unless ended?

      stop
      choose_ports
      @pids = [spawn_dns, spawn_pebble(settings)]
      false
    end
    self
  end

  def stop
    @pids&.each do |pid|
      Process.kill("KILL", pid)
      Process.wait(pid)
    end
    @pids = nil
  end

  # What its directory says.
  def resources
    http = Net::HTTP.new("localhost", @port).tap { |one| (one.use_ssl = true) && one.ca_file = @vouching_file }
    JSON.parse(http.get("/dir").body)
  end

  # The certificate of the authority that issues. It is a new one at each start.
  def root
    http = Net::HTTP.new("localhost", @management).tap { |one| (one.use_ssl = true) && one.ca_file = @vouching_file }
    OpenSSL::X509::Certificate.new(http.get("/roots/0").body)
  end

  def log = File.read(log_file)

  private

  def log_file = File.join(@folder, "authority.log")

  def choose_ports
    @port, @management, @dns, @dns_management = Array.new(4) { FreePort.free_port }
    write_files
  end

  # Whether one of its processes has ended; it is not waited for yet, so that `stop` can do that.
  def ended?
    @pids.any? { |pid| File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] == "Z" }
  end

  def write_files
    vouching = TlsFiles.authority("Vouching")
    @own = TlsFiles.issue(["localhost"], by: vouching)
    @vouching_file = write("vouching.pem", vouching.pem)
    settings = { "listenAddress" => "127.0.0.1:#{@port}", "managementListenAddress" => "127.0.0.1:#{@management}",
                 "certificate" => write("own.pem", @own.pem), "privateKey" => write("own.key", @own.key_pem),
                 "ocspResponderURL" => "", **@settings }
    @config = write("pebble.json", JSON.generate("pebble" => settings))
  end

  def write(name, text) = File.join(@folder, name).tap { |path| File.write(path, text) }

  def spawn_dns
    none = %w[-http01 -https01 -tlsalpn01 -defaultIPv6].flat_map { |option| [option, ""] }
    run("pebble-challtestsrv", "-dns01", "127.0.0.1:#{@dns}", "-management", "127.0.0.1:#{@dns_management}", *none)
  end

  # It waits for no more than a moment before it looks, and refuses no nonce by chance.
  def spawn_pebble(settings)
    env = { PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "0", **settings }.transform_keys(&:to_s)
    run(env, "pebble", "-config", @config, "-dnsserver", "127.0.0.1:#{@dns}")
  end

  def run(*command) = Process.spawn(*command, %i[out err] => [log_file, "a"], in: File::NULL)
end
