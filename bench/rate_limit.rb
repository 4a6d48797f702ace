# frozen_string_literal: true

# What rate limits cost, and whom they protect.
#
#     ruby bench/rate_limit.rb refusals     CPU time of a request that gets 429, in turns with nginx's
#     ruby bench/rate_limit.rb neighbours   times of 50 clients, alone and beside a client at 20,000 requests a second
#                                           (in a network namespace: unshare --net)
#     ruby bench/rate_limit.rb addresses    memory after requests of 1,000,000 addresses
#
# PAIRS (12), TURN (seconds, 5) and CONNECTIONS (of the flood, 8) change what is measured. Needs Debian's wrk and
# nghttp2-client, and for the first nginx.

require_relative "../test/support/free_port"
require_relative "../test/support/web_server"
require_relative "turns"

# A load by wrk, whose requests come from addresses that a script chooses.
module Load
  include Turns

  # The addresses of 50 clients that stay below the limit: three requests a second each.
  OTHERS = <<~LUA
    local number = 0
    function request()
      number = (number + 1) % 50
      return wrk.format("GET", "/", { ["X-Forwarded-For"] = "192.0.2." .. (number + 1) })
    end
    function delay() return math.random(100, 500) end
  LUA
  # A client of a trusted proxy, which gets its refusals at once.
  REFUSED = "wrk.headers['X-Forwarded-For'] = '203.0.113.9'\n"
  # 16 requests at a time.
  PIPELINE = <<~LUA.freeze
    #{REFUSED}
    local all
    function init() all = string.rep(wrk.format("GET", "/"), 16) end
    function request() return all end
  LUA
  # Another address with each request.
  ADDRESSES = <<~LUA
    local number = 0
    function request()
      number = number + 1
      local address = string.format("10.%d.%d.%d", number / 65536 % 256, number / 256 % 256, number % 256)
      return wrk.format("GET", "/", { ["X-Forwarded-For"] = address })
    end
  LUA

  private

  # CPU time of the server for one of these requests, in µs: in all, and outside of the kernel.
  def cost(pid, port, script)
    before = cpu_us(pid)
    text = wrk(port, script)
    refused = text[/Non-2xx or 3xx responses: (\d+)/, 1].to_i
    raise "not all were refused: #{text}" if refused < requests_in(text) * 0.99

    cpu_us(pid).zip(before).map { |now, then_| (now - then_) / requests_in(text) }
  end

  def cpu_us(pid)
    user, system = ProcessFacts.cpu_times(ProcessFacts.tree(pid)).map { |seconds| seconds * 1e6 }
    [user + system, user]
  end
end

# One of the measurements.
class RateLimitBench
  include FreePort
  include Load

  # A page that takes 2 ms of computing.
  PAGE = <<~RUBY
    run ->(_) do
      ends = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.002
      Integer.sqrt(2**64) while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < ends
      [200, { "content-type" => "text/plain" }, ["page"]]
    end
  RUBY
  FLOOD = 20_000 # requests a second
  CONNECTIONS = Integer(ENV.fetch("CONNECTIONS", 8))
  # An nginx that refuses as Highball does.
  NGINX = <<~NGINX
    keepalive_requests 100000000;
    limit_req_zone $binary_remote_addr zone=all:10m rate=1r/m;
    limit_req_status 429;
    limit_req_log_level info;
    server { listen 80; location / { limit_req zone=all; empty_gif; } }
  NGINX
  CLIENT = "198.51.100.7"
  ADDRESSES_IN_ALL = 1_000_000

  def refusals
    nginx = WebServer.start("nginx", NGINX)
    server = serve("1/h", HELLO, *behind)
    { "each after the answer to the last": REFUSED, "16 in a packet": PIPELINE }.each do |title, script|
      puts "refused requests, #{title}:"
      pairs = Array.new(PAIRS) { [server, nginx].map { |one| cost(one.pid, one.port, script) } }
      %w[Highball nginx].zip(pairs.transpose) do |name, costs|
        all, user = costs.transpose.map { |times| middle(times) }
        puts format("  %-8<name>s %.2<all>f µs of CPU, %.2<user>f µs of it outside of the kernel",
                    { name: name, all: all, user: user })
      end
    end
  ensure
    server&.finish
    nginx&.finish
  end

  def neighbours
    give_client_an_address
    elsewhere = serve("20/s", HELLO, *reachable)
    { "hello" => HELLO, "a page of 2 ms" => PAGE }.each do |title, app|
      server = serve("20/s", app, *reachable)
      flooded = { "alone" => nil, "beside a flood of another server" => elsewhere, "beside a flood" => server }
      puts "#{title}, 50 clients:"
      report_p99(Array.new(PAIRS) { flooded.transform_values { |one| p99_beside(one, server) } })
    ensure
      server&.finish
    end
  ensure
    elsewhere&.finish
  end

  def addresses
    server = serve("1/h", HELLO, *behind)
    before = memory(server)
    rate = requests_in(wrk(server.port, ADDRESSES, seconds: 1))
    sent = requests_in(wrk(server.port, ADDRESSES, seconds: (ADDRESSES_IN_ALL * 2.0 / rate).ceil))
    puts format("%<sent>d addresses: %<memory>.1f MiB", { sent: sent, memory: memory(server) - before })
  ensure
    server&.finish
  end

  private

  # Others come by a trusted proxy, and the client that sends too many requests directly.
  def reachable = [*behind, "-b", "#{CLIENT}:#{free_port}"]

  def behind = ["--trusted-proxies", "loopback", "--rate-limit-exempt", "none"]

  def serve(limit, app, *options)
    HighballServer.start(app_of(app), "--rate-limit", limit, "--access-log", "none", *options)
  end

  def give_client_an_address
    [%w[link set lo up], ["address", "add", "#{CLIENT}/32", "dev", "lo"]].each do |order|
      system("ip", *order) or abort "run it by `unshare --net`"
    end
  end

  def report_p99(rounds)
    rounds.first.each_key do |way|
      p99 = middle(rounds.map { |round| round[way] })
      ratio = middle(rounds.map { |round| round[way] / round["alone"] })
      puts format("  p99 %<p99>6.2f ms %<way>s (%<ratio>.2f ×)", { p99: p99, way: way, ratio: ratio })
    end
  end

  # p99 in ms of the clients that stay below the limit.
  def p99(server)
    text = wrk(server.port, OTHERS, connections: 50)
    raise text if text.match?(/Non-2xx|Socket errors/)

    value, unit = text.match(/99%\s+([\d.]+)(us|ms|s)/).captures
    value.to_f * { "us" => 0.001, "ms" => 1, "s" => 1000 }.fetch(unit)
  end

  def p99_beside(flooded, server)
    return p99(server) unless flooded

    command = ["h2load", "--h1", "-c", CONNECTIONS.to_s, "-t", "1", "--rps", (FLOOD / CONNECTIONS).to_s,
               "-D", (TURN + 2).to_s, flood_url(flooded)]
    flood = Process.spawn(*command, out: File::NULL)
    sleep 1
    p99(server)
  ensure
    Process.wait(flood) if flood
  end

  def flood_url(server) = server.log[%r{http://#{CLIENT}:\d+}o]

  def memory(server) = ProcessFacts.private_dirty_bytes([server.server_pid]) / (1024.0**2)
end

ARGV.each { |what| RateLimitBench.new.public_send(what) }
