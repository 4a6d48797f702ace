# frozen_string_literal: true

module Bench
  ROOT = File.expand_path("../..", __dir__)
  APP = File.join(ROOT, "bench/apps/hello")
  RELEASE = File.join(ENV.fetch("CARGO_TARGET_DIR", File.join(ROOT, "target")), "release")
  HIGHBALL = File.join(RELEASE, "highball")
  FLOOR = File.join(RELEASE, "highball-floor")

  # A way to serve the hello-world application. `command`: port, workers, threads => argument list.
  # `needs`: program => how to get it.
  Scheme = Struct.new(:title, :command, :needs, :version, keyword_init: true) do
    def self.output(*command) = IO.popen(command, err: File::NULL, &:read).strip
  end

  SCHEMES = {
    "highball" => Scheme.new(
      title: "Highball",
      command: lambda { |port, workers, threads|
        [HIGHBALL, "-e", "production", "-w", workers, "-t", threads, "-p", port, "-b", "127.0.0.1", APP]
      },
      needs: { HIGHBALL => "bin/setup" },
      version: lambda {
        commit = Scheme.output("git", "-C", ROOT, "describe", "--always", "--dirty")
        "#{Scheme.output(HIGHBALL, '--version')}, commit #{commit}"
      }
    ),
    "puma" => Scheme.new(
      title: "Puma",
      # One worker is Puma without a cluster: its leanest form.
      command: lambda { |port, workers, threads|
        ["puma", "--no-config", "-q", "-e", "production", "-w", workers == 1 ? 0 : workers,
         "-t", "#{threads}:#{threads}", "-b", "tcp://127.0.0.1:#{port}", File.join(APP, "config.ru")]
      },
      needs: { "puma" => "apt-get install puma" },
      version: -> { Scheme.output("puma", "--version") }
    ),
    "floor" => Scheme.new(
      title: "floor",
      command: ->(port, _workers, _threads) { [FLOOR, port] },
      needs: { FLOOR => "cargo build --release -p highball-floor" },
      version: -> { "bare epoll server, constant answer, always one thread" }
    )
  }.freeze
end
