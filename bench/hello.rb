#!/usr/bin/env ruby
# frozen_string_literal: true

# What a request costs in Highball, in Puma, and in a bare epoll server that answers a constant: the
# hello-world application on this machine. `ruby bench/hello.rb --help` lists the options.
#
# In reading order: scheme (what is compared), comparison (the rounds), server, wrk, process_tree (CPU and
# memory), system_calls, machine, report.

require "etc"
require "net/http"
require "optparse"
require "socket"
require "tempfile"

module Bench
  # A benchmark that cannot go on; the message says why.
  Failure = Class.new(StandardError)
end

require_relative "lib/process_tree"
require_relative "lib/wrk"
require_relative "lib/machine"
require_relative "lib/scheme"
require_relative "lib/server"
require_relative "lib/system_calls"
require_relative "lib/comparison"
require_relative "lib/report"

module Bench
  # The command line of the hello-world benchmark.
  class Hello
    METHOD = <<~TEXT
      Each round starts every server anew; then, for each number of connections, the schemes are measured in
      turn: %<warm_up>d s of warm-up, which is discarded, and %<seconds>d s of load by wrk (one thread,
      keep-alive) on the same CPUs. A figure is the median of the rounds (smallest–largest); a ratio is taken
      within each round. Rounds: %<rounds>d, workers: %<workers>d, threads in each: %<threads>d.

      - CPU: user and system time of all processes of the server, read right before and right after wrk's run,
        divided by wrk's count of requests. The sum is exact (`schedstat`, in ns); its division into user and
        system time is sampled by the kernel.
      - Memory: of all processes, right after the load. Pages of the rings, which the front and a worker share,
        are counted once and not as private dirty; PSS contains them.
      - Context switches: of all threads, per request.
      - Others, stolen: the share of the machine's CPU time that went to other processes than the server and
        wrk, and that its hypervisor kept. Where either is more than a few per cent, measure again: a busy
        machine makes short sleeps cheaper and shared caches colder, and ratios shift.
      - `!` marks figures during which wrk saw errors; their number is the sum over the rounds.
      - System calls: of one short run of their own, counted by the kernel's tracepoints.
    TEXT

    def initialize(arguments)
      @command = ["ruby bench/hello.rb", *arguments].join(" ")
      @options = { rounds: 5, seconds: 4, connections: [1, 25, 100], schemes: SCHEMES.keys,
                   workers: 1, threads: 1, syscalls: false, output: File.join(ROOT, "bench/RESULTS.md") }
      parse(arguments)
      @schemes = @options[:schemes].map { |name| SCHEMES.fetch(name) { abort "unknown scheme: #{name}" } }
    end

    def run
      refuse_what_is_missing
      measurements = comparison.enum_for(:each_measurement).map { |one| one.tap { announce(one) } }
      system_calls = @options[:syscalls] ? comparison.enum_for(:each_system_calls).to_a : []
      report = Report.new(measurements, system_calls)
      File.write(@options[:output], document(report))
      puts sections(report.tables(range: false)), nil, "Written to #{@options[:output]}"
    rescue Failure => e
      abort e.message
    rescue SignalException => e
      abort "ended by #{Signal.signame(e.signo)}; the servers are stopped"
    end

    private

    def parse(arguments)
      rest = parser.parse(arguments, into: @options)
      abort "unknown arguments: #{rest.join(' ')}" if rest.any?

      numbers = @options.values_at(:rounds, :seconds, :workers, :threads, :connections).flatten
      abort "numbers of rounds, seconds and so on begin at 1" unless numbers.all?(&:positive?)
    rescue OptionParser::ParseError => e
      abort "#{e.message} (see --help)"
    end

    def parser
      OptionParser.new do |parser|
        parser.banner = "Usage: ruby bench/hello.rb [options]"
        parser.on("--rounds N", Integer, "rounds (5)")
        parser.on("--seconds N", Integer, "length of each measurement (4)")
        parser.on("--connections LIST", Array, "keep-alive (1,25,100)") { |list| list.map(&:to_i) }
        parser.on("--schemes LIST", Array, "what to measure (#{SCHEMES.keys.join(',')})")
        parser.on("--workers N", Integer, "worker processes (1)")
        parser.on("--threads N", Integer, "threads in each (1)")
        parser.on("--syscalls", "count system calls as well (by perf, which may need root)")
        parser.on("--output FILE", "where the report goes (bench/RESULTS.md)")
      end
    end

    def comparison
      Comparison.new(schemes: @schemes, **@options.slice(:connections, :rounds, :seconds, :workers, :threads))
    end

    def refuse_what_is_missing
      needs = { "wrk" => "apt-get install wrk" }
      needs["perf"] = "apt-get install linux-perf" if @options[:syscalls]
      needs = needs.merge(*@schemes.map(&:needs))
      missing = needs.reject { |program, _| system("command -v #{program} >/dev/null") }
      abort missing.map { |program, remedy| "#{program} is missing: #{remedy}" }.join("\n") if missing.any?
    end

    def announce(one)
      what = "round #{one.round}, #{one.connections} connections, #{one.scheme.title}"
      errors = " ! #{one.load.errors}" if one.errors?
      warn "#{what}: #{one.cpu_us.round(1)} µs, #{one.load.rate.round} requests/s#{errors}"
    end

    def document(report)
      versions = @schemes.to_h { |scheme| [scheme.title, scheme.version.call] }.merge(Machine.versions)
                         .map { |name, version| "- #{name}: #{version}\n" }.join
      method = format(METHOD, **@options, warm_up: Comparison::WARM_UP_SECONDS)
      texts = report.tables(range: true).merge(
        "Versions" => versions, "Method" => method, "Every measurement" => report.measurements
      )
      "# Hello world\n\nMeasured on #{Time.now.strftime('%Y-%m-%d')} by `#{@command}`.\n#{sections(texts)}"
    end

    def sections(texts) = texts.map { |title, text| "\n## #{title}\n\n#{text}" }.join
  end
end

Bench::Hello.new(ARGV).run if $PROGRAM_NAME == __FILE__
