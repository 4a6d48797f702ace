# frozen_string_literal: true

# What sessions cost a Rails application under Highball: the same page without a session, and with each store.
#
#     ruby bench/sessions.rb [OUTPUT [ROUNDS]]
#
# Prints a table, and writes it with a chart and all figures into the folder OUTPUT (highball-bench). This starts a
# Redis, if Debian's package redis-server is installed. HIGHBALL_BIN names the Highball.

require "fileutils"
require "json"
require "tmpdir"
require_relative "../test/support/redis_server"

# The stores, from their workloads.
STORES = {
  "session-none" => "none", "session-cookie" => "cookie", "session-highball" => "file, Highball's store",
  "session-pstore" => "file, Ruby's PStore", "session-file" => "file, Rails' cache",
  "session-sqlite" => "SQLite", "session-redis" => "Redis"
}.freeze
BASE = "session-cookie"

# The samples of a store.
Row = Struct.new(:title, :samples) do
  def cpu_us = median { |sample| sample["cpu_user_us"] + sample["cpu_system_us"] }
  def requests = median { |sample| sample["requests_per_second"] }
  def p99_ms = median { |sample| sample["latency"]["p99"] }
  def errors = samples.sum { |sample| sample["errors"].values.sum }

  def cells(base)
    [title, requests.round, cpu_us.round, format("%.2f×", cpu_us / base.cpu_us), format("%.1f", p99_ms), errors]
  end

  private

  def median(&value) = samples.map(&value).sort[samples.length / 2]
end

# CPU time per request as bars, for readers with light and with dark pages.
class Chart
  LINE = 34
  LEFT = 190
  WIDTH = 720
  STYLE = "text{font:14px system-ui,sans-serif;fill:#333}rect{fill:#3b76af}" \
          "@media(prefers-color-scheme:dark){text{fill:#ddd}rect{fill:#6aa5dd}}"

  def initialize(rows)
    @rows = rows
    @scale = (WIDTH - LEFT - 90) / rows.map(&:cpu_us).max
  end

  def svg
    height = (@rows.length * LINE) + 40
    bars = @rows.each_with_index.map { |row, index| bar(row, 36 + (index * LINE)) }
    <<~SVG
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{WIDTH} #{height}" role="img" aria-label="CPU time per request by session store">
      <style>#{STYLE}</style>
      <text x="#{LEFT}" y="20">CPU time per request, µs</text>
      #{bars.join("\n")}
      </svg>
    SVG
  end

  private

  def bar(row, top)
    width = (row.cpu_us * @scale).round
    %(<text x="#{LEFT - 10}" y="#{top + 17}" text-anchor="end">#{row.title.sub('&', '&amp;')}</text>) +
      %(<rect x="#{LEFT}" y="#{top}" width="#{width}" height="24"/>) +
      %(<text x="#{LEFT + width + 8}" y="#{top + 17}">#{row.cpu_us.round}</text>)
  end
end

# The Highball to measure: the named one, the build of this source tree, or the installed one.
def highball
  own = File.expand_path("../bin/highball", __dir__)
  ENV.fetch("HIGHBALL_BIN") { File.exist?(own) ? own : "highball" }
end

# The data of `highball bench`, with a workload for this Redis.
def data_folder(redis)
  Dir.mktmpdir("highball-sessions") do |folder|
    %w[apps schemes].each { |name| File.symlink(File.join(__dir__, name), File.join(folder, name)) }
    FileUtils.cp_r(File.join(__dir__, "workloads"), folder)
    if redis
      workload = File.read(File.join(folder, "workloads/session-sqlite.toml"))
      workload.sub!(/BENCH_SESSIONS = "sqlite"/, %(BENCH_SESSIONS = "redis", BENCH_REDIS_URL = "#{redis}"))
      File.write(File.join(folder, "workloads/session-redis.toml"), workload)
    end
    yield folder
  end
end

def measure(output, rounds)
  redis = RedisServer.new(durable: false) if RedisServer.program
  data_folder(redis&.url) do |folder|
    stores = STORES.keys - (redis ? [] : ["session-redis"])
    options = ["--rounds", rounds, "--workers", "2", "--connections", "8", "--no-counts", "--output", output]
    system({ "HIGHBALL_BENCH" => folder }, highball, "bench", "schemes", "--only", "highball", "--workload",
           stores.join(","), *options, exception: true, out: File::NULL)
  end
  samples = JSON.parse(File.read(File.join(output, "results.json")))["samples"].group_by { |one| one["workload"] }
  STORES.filter_map { |name, title| Row.new(title, samples[name]) if samples[name] }
ensure
  redis&.finish
end

def table(rows)
  base = rows.find { |row| row.title == STORES[BASE] }
  lines = rows.map { |row| "| #{row.cells(base).join(' | ')} |" }
  ["| sessions | requests/s | CPU per request, µs | against cookies | p99, ms | failed |", "|#{' --- |' * 6}", *lines]
    .join("\n")
end

output, rounds = ARGV
output ||= "highball-bench"
rows = measure(output, rounds || "3")
puts table(rows)
File.write(File.join(output, "SESSIONS.md"), "#{table(rows)}\n")
File.write(File.join(output, "sessions.svg"), Chart.new(rows).svg)
