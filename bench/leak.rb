# frozen_string_literal: true

# The memory of a container with an application that leaks 1 MiB with each request, with Highball's limits and without:
#
#     ruby bench/leak.rb [MINUTES] [FOLDER]
#
# Needs root, for a memory cgroup. Each way gets RATE requests a second for MINUTES (15). Writes leak.csv (the memory of
# both over time) and leak.svg, a picture of it, to FOLDER.

require_relative "../test/support/highball_server"
require_relative "../test/support/http_connection"
require_relative "../test/support/memory_cgroup"
require_relative "../test/support/steady_load"
require "tmpdir"

# An application that leaks, in a cgroup.
class Leak
  RATE = 20
  LIMIT_MIB = 256
  MIB = 1 << 20
  EVERY = 0.25 # seconds between two looks
  WAYS = { "with limits" => [], "without" => ["--memory-budget", "none"] }.freeze
  APP = <<~RUBY
    KEPT = []
    run lambda { |env|
      KEPT << ("x" * (1 << 20)) if env["PATH_INFO"] == "/leak"
      [200, {}, ["ok"]]
    }
  RUBY

  def initialize(minutes, folder)
    @seconds = (minutes * 60).round
    @folder = folder
  end

  def run
    lines = WAYS.to_h { |way, options| [way, measure(way, options)] }
    File.write(File.join(@folder, "leak.csv"), csv(lines))
    File.write(File.join(@folder, "leak.svg"), Picture.new(lines, @seconds).svg)
  end

  private

  # Pairs of seconds and MiB.
  def measure(way, options)
    cgroup = MemoryCgroup.make(LIMIT_MIB * MIB) or abort "no memory cgroup can be made here: it needs root"
    serve(cgroup, options) do |server|
      points = []
      outcomes = during_looks(cgroup, points) do
        SteadyLoad.run(server, "/leak", per_second: RATE, seconds: @seconds)
      end
      report(way, cgroup, points, outcomes, server)
      points
    end
  ensure
    cgroup&.remove
  end

  def serve(cgroup, options)
    Dir.mktmpdir do |folder|
      File.write("#{folder}/config.ru", APP)
      command = [*cgroup.through, HighballServer::BINARY, "serve", "-b", "127.0.0.1", "-p", "0", "-e", "production",
                 "-w", "2", "-t", "3", *options, folder]
      server = HighballServer.start(folder, command: command)
      yield server
    ensure
      server&.finish
    end
  end

  def during_looks(cgroup, points)
    began = Deadline.now
    done = false
    looks = Thread.new do
      until done
        points << [Deadline.now - began, cgroup.used_bytes / MIB.to_f]
        sleep EVERY
      end
    end
    yield
  ensure
    done = true
    looks.join
  end

  def report(way, cgroup, points, outcomes, server)
    peak = points.map(&:last).max.round
    replaced = server.status["apps"].first.dig("memory", "replaced")
    failed = outcomes.reject { |outcome, _| outcome == 200 }.values.sum
    cpu = ProcessFacts.cpu_seconds([server.server_pid])
    puts "#{way.ljust(12)}#{outcomes.values.sum} requests, #{failed} failed; #{cgroup.oom_kills} OOM kills; " \
         "at most #{peak} of #{LIMIT_MIB} MiB; #{replaced} workers replaced; #{cpu.round(2)} s CPU of the server"
  end

  def csv(lines)
    rows = lines.flat_map { |way, points| points.map { |at, mib| "#{way},#{at.round(2)},#{mib.round(1)}" } }
    ["way,seconds,mib", *rows].join("\n").concat("\n")
  end

  # The picture.
  class Picture
    WIDTH = 760
    HEIGHT = 320
    LEFT = 56
    RIGHT = 32
    BOTTOM = 44
    TOP = 34
    COLOURS = %w[#1b7f5c #c2410c].freeze
    # Points in a line, at most; of those between two, the largest counts.
    MOST = 600

    def initialize(lines, seconds)
      @lines = lines
      @seconds = seconds.to_f
    end

    def svg
      <<~SVG
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{WIDTH} #{HEIGHT}" font-family="system-ui, sans-serif" font-size="13" role="img">
        <title>Memory of a container of #{LIMIT_MIB} MiB with an application that leaks, with limits and without</title>
        <rect width="100%" height="100%" fill="#fff"/>
        #{[*grid, limit, *@lines.each_with_index.map { |(way, points), index| line(way, points, index) }].join("\n")}
        </svg>
      SVG
    end

    private

    def x(at) = (LEFT + ((WIDTH - LEFT - RIGHT) * at / @seconds)).round(1)
    def y(mib) = (HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * mib / (LIMIT_MIB * 1.1))).round(1)

    def grid
      rows = (0..LIMIT_MIB).step(64).map do |mib|
        "<path d=\"M#{LEFT} #{y(mib)}H#{WIDTH - RIGHT}\" stroke=\"#ddd\"/>" \
          "<text x=\"#{LEFT - 8}\" y=\"#{y(mib) + 4}\" text-anchor=\"end\" fill=\"#444\">#{mib}</text>"
      end
      minutes = (0..(@seconds / 60).floor).step([(@seconds / 60 / 6).ceil, 1].max).map do |minute|
        "<text x=\"#{x(minute * 60)}\" y=\"#{HEIGHT - BOTTOM + 20}\" text-anchor=\"middle\" fill=\"#444\">" \
          "#{minute} min</text>"
      end
      rows + minutes + ["<text x=\"8\" y=\"16\" fill=\"#444\">MiB</text>"]
    end

    def limit
      "<path d=\"M#{LEFT} #{y(LIMIT_MIB)}H#{WIDTH - RIGHT}\" stroke=\"#444\" stroke-dasharray=\"6 4\"/>" \
        "<text x=\"#{WIDTH - RIGHT}\" y=\"#{y(LIMIT_MIB) - 6}\" text-anchor=\"end\" fill=\"#444\">" \
        "limit of the container</text>"
    end

    def line(way, points, index)
      size = [(points.length / MOST.to_f).ceil, 1].max
      path = points.each_slice(size).map { |some| some.max_by(&:last) }
      path = path.map { |at, mib| "#{x(at)} #{y(mib)}" }.join("L")
      "<path d=\"M#{path}\" fill=\"none\" stroke=\"#{COLOURS[index]}\" stroke-width=\"1.5\"/>" \
        "<text x=\"#{LEFT + 60 + (index * 140)}\" y=\"16\" fill=\"#{COLOURS[index]}\">#{way}</text>"
    end
  end
end

Leak.new(Float(ARGV[0] || 15), ARGV[1] || ".").run if $PROGRAM_NAME == __FILE__
