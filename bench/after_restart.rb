#!/usr/bin/env ruby
# frozen_string_literal: true

# How long requests take before, during and after a rolling restart, under Highball and under Puma (a phased restart):
#
#     ruby bench/after_restart.rb [SHARE [SECONDS [ROUNDS]]]
#
# The application is the example blog, with two workers of three threads. First as many requests a second as the
# server answers are measured, then SHARE (0.7) of them are sent, each at its time whatever has become of those before
# it: for SECONDS (30), while the server restarts, and for SECONDS after that. The servers take turns until each has
# ROUNDS (3). The last lines have medians over the rounds. The speed of a shared machine changes within minutes, and
# SHARE of what it could do a minute ago may be more than it can do now. So a fixed computation is timed all the
# while. It needs memory and the collector, as an application does: neighbors on the machine take its caches, too. If
# it takes a tenth longer than when the server's capacity was measured, or after the restart than before, the round
# does not count. Needs Debian's packages ruby-rails, ruby-sqlite3 and puma, and a built Highball (HIGHBALL_BIN).

require "fileutils"
require "json"
require "socket"
require "tmpdir"
require_relative "deployment"

BLOG = Deployment::Application.new(
  folder: File.expand_path("apps/examples/blog", __dir__), environment: { "SECRET_KEY_BASE" => "the benchmark's" },
  workers: 2, threads: 3, path: "/posts/new"
)

# Sends requests.
module Client
  module_function

  WITHIN = 30 # seconds
  UNDER_WAY = 512 # requests at a time; another one waits, and counts from its time on
  # The benchmark's workload.
  PATHS = (1..60).flat_map do |number|
    ["/?#{number}", "/posts/#{number}", "/posts/#{number}/file", "/posts/new"]
  end.freeze

  # Whether the answer to a request is right.
  def ask(port, path)
    TCPSocket.open("127.0.0.1", port) do |socket|
      socket.write("GET #{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
      raise "no answer to #{path}" unless socket.wait_readable(WITHIN)

      socket.read.start_with?("HTTP/1.1 200 ")
    end
  rescue SystemCallError
    false
  end

  # Requests a second that the server answers.
  def capacity(port, seconds)
    finish = now + seconds
    counts = Array.new(8) do |first|
      Thread.new { (first..).step(8).take_while { |index| now < finish && ask(port, PATHS[index % PATHS.size]) }.size }
    end
    counts.sum(&:value) / seconds.to_f
  end

  # Sends requests at this rate until `stop` returns true. Returns [time when it was due, seconds that it took, whether
  # its answer was right] for each.
  def load(port, rate, stop)
    began = now
    index = -1
    threads = Array.new(UNDER_WAY) do
      Thread.new do
        requests = []
        until stop.call
          number = index += 1
          requests << ask_at(began + (number / rate), port, PATHS[number % PATHS.size])
        end
        requests
      end
    end
    threads.flat_map(&:value)
  end

  def ask_at(due, port, path)
    sleep [due - now, 0].max
    right = ask(port, path)
    [due, now - due, right]
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

def median(values) = values.sort[values.size / 2]

# How fast the machine is: a process that computes the same twice a second, and how much CPU time that takes.
class Gauge
  DOCUMENT = Array.new(3000) { |number| { "id" => number, "title" => "post #{number}", "tags" => %w[ruby rails] } }

  def initialize
    @folder = Dir.mktmpdir
    parent = Process.pid
    @pid = fork do
      note while Process.ppid == parent
      exit!(true) # what is to be done at the exit is the parent's
    end
  end

  # The median of the CPU times between two moments.
  def between(from, till)
    lines = File.readlines(file).map { |line| line.split.map { |word| Float(word) } }
    median(lines.filter_map { |at, took| took if at.between?(from, till) })
  end

  def stop
    Process.kill(:KILL, @pid)
    Process.wait(@pid)
    FileUtils.rm_r(@folder)
  end

  private

  def file = File.join(@folder, "times")

  def note
    began = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    3.times { JSON.parse(JSON.generate(DOCUMENT)) }
    took = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - began
    File.write(file, "#{Client.now} #{took}\n", mode: "a")
    sleep 0.5
  end
end

# Measures a server, prints a line, and returns the p99 of each part, in milliseconds; nil if the machine became slower.
class Measurement
  WARM_UP = 15 # seconds
  PARTS = %w[before during after].freeze
  SLOWER = 1.1

  def initialize(share, seconds, gauge)
    @share = share
    @seconds = seconds
    @gauge = gauge
  end

  def of(server)
    Client.capacity(server.port, WARM_UP)
    began = Client.now
    rate = Client.capacity(server.port, WARM_UP) * @share
    requests, times = under_load(server, rate)
    parts = times.each_cons(2).map { |from, till| requests.select { |due,| due.between?(from, till) } }
    parts.map! { |part| part.map { |_, took,| took * 1000 }.sort }
    slower = slowdown([began, *times])
    wrong = requests.count { |_, _, right| !right }
    puts "#{server.class} #{rate.round} requests/s: #{in_words(parts)}; restart #{(times[2] - times[1]).round(1)} s; " \
         "#{wrong} of #{requests.size} failed; the machine took #{slower.round(2)} times as long as before"
    parts.map { |part| quantile(part, 0.99) } if slower <= SLOWER
  end

  private

  # The requests, and the times at which the load began, the restart began and ended, and the load ended.
  def under_load(server, rate)
    stopped = false
    loading = Thread.new { Client.load(server.port, rate, -> { stopped }) }
    times = [Client.now]
    sleep @seconds
    times << Client.now
    server.restart
    times << Client.now
    sleep @seconds
    stopped = true
    [loading.value, times << Client.now]
  end

  # How much longer the gauge's computation took under load than when the capacity was measured, or after the restart
  # than before.
  def slowdown(times)
    measuring, before, _, after = times.each_cons(2).map { |from, till| @gauge.between(from, till) }
    [before / measuring, after / measuring, after / before].max
  end

  def in_words(parts)
    texts = PARTS.zip(parts).map do |name, sorted|
      p50, p99, most = [0.5, 0.99, 1].map { |share| quantile(sorted, share).round }
      "#{name} p50 #{p50} p99 #{p99} max #{most} ms"
    end
    texts.join(", ")
  end

  def quantile(sorted, share) = sorted[((sorted.size - 1) * share).round]
end

system("ruby", File.expand_path("apps/examples/prepare", __dir__), "blog", exception: true)
share, seconds, rounds = ARGV
gauge = Gauge.new
measurement = Measurement.new(Float(share || 0.7), Integer(seconds || 30), gauge)
p99s = Hash.new { |all, kind| all[kind] = [] }
wanted = Integer(rounds || 3)
(3 * wanted).times do
  [Puma, Highball].reject { |kind| p99s[kind].size == wanted }.each do |kind|
    p99 = kind.open(BLOG) { |server| measurement.of(server) }
    p99s[kind] << p99 if p99
  end
end
gauge.stop
p99s.each do |kind, of_rounds|
  medians = of_rounds.transpose.map { |values| median(values).round }
  ratios = of_rounds.map { |before, _, after| after / before }
  puts format("%-9<name>s median p99: %<texts>s ms; after is %<ratio>.2f (%<least>.2f to %<most>.2f) of before",
              name: kind, texts: Measurement::PARTS.zip(medians).map { |pair| pair.join(" ") }.join(", "),
              ratio: median(ratios), least: ratios.min, most: ratios.max)
end
