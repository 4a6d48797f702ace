# frozen_string_literal: true

module Bench
  # System calls per request, counted by the kernel's tracepoints (`perf stat`): they cost a server a few per
  # cent, where a tracer that stops it at each call would change how it sleeps and wakes.
  class SystemCalls
    SECONDS = 1
    ALL = "raw_syscalls:sys_enter"
    NAMED = %w[read recvfrom recvmsg write writev sendto sendmsg epoll_wait epoll_pwait ppoll select futex]
            .freeze
    COUNT = /^(\d+),,(?:raw_)?syscalls:(?:sys_enter_)?(\w+),/

    # Counts during one short run.
    def self.count(server, connections)
      Tempfile.create("highball-bench") do |file|
        load = Wrk.run(server.url, connections:, seconds: SECONDS, under: perf(server, file.path))
        new(file.read.scan(COUNT).to_h { |count, name| [name, count.to_f / load.requests] })
      end
    end

    def self.perf(server, output)
      events = [ALL, *NAMED.map { |name| "syscalls:sys_enter_#{name}" }].join(",")
      ["perf", "stat", "-x", ",", "-e", events, "-o", output, "-p", server.tree.pids.join(","), "--"]
    end
    private_class_method :perf

    # All calls per request.
    attr_reader :total

    def initialize(per_request)
      @total = per_request.fetch("sys_enter")
      @by_name = per_request.slice(*NAMED)
    end

    # The calls by name, those that are made often.
    def to_s
      often = @by_name.select { |_, count| count >= 0.01 }.sort_by { |_, count| -count }
      often << ["other", @total - often.sum(&:last)]
      often.map { |name, count| "#{name} #{count.round(2)}" }.join(", ")
    end
  end
end
