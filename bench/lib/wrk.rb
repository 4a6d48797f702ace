# frozen_string_literal: true

module Bench
  # The load generator: one thread, keep-alive connections.
  module Wrk
    # What wrk counted. `errors`: kind => number, only those that happened.
    Load = Struct.new(:requests, :rate, :p50_ms, :p99_ms, :errors, keyword_init: true)

    MILLISECONDS = { "us" => 1e-3, "ms" => 1.0, "s" => 1e3, "m" => 6e4, "h" => 3.6e6 }.freeze

    # `under` is a command to run wrk with, such as `perf stat`.
    def self.run(url, connections:, seconds:, under: [])
      command = [*under, "wrk", "--threads", "1", "--connections", connections.to_s,
                 "--duration", "#{seconds}s", "--latency", url]
      output = IO.popen(command, in: File::NULL, err: %i[child out], &:read)
      raise Failure, "#{command.join(' ')}:\n#{output}" unless Process.last_status.success?

      parse(output)
    end

    def self.parse(output)
      requests = output[/(\d+) requests in /, 1].to_i
      raise Failure, "wrk counted no requests:\n#{output}" if requests.zero?

      Load.new(requests:, rate: output[%r{Requests/sec: +([\d.]+)}, 1].to_f, errors: errors(output),
               p50_ms: percentile(output, 50), p99_ms: percentile(output, 99))
    end

    def self.percentile(output, percent)
      number, unit = output.match(/^ +#{percent}% +([\d.]+)(us|ms|s|m|h)$/)&.captures
      raise Failure, "wrk printed no percentile #{percent}:\n#{output}" unless number

      number.to_f * MILLISECONDS.fetch(unit)
    end

    def self.errors(output)
      kinds = output[/Socket errors: (.*)/, 1].to_s.scan(/(\w+) (\d+)/).to_h
      kinds["status"] = output[/Non-2xx or 3xx responses: (\d+)/, 1]
      kinds.transform_values(&:to_i).reject { |_, count| count.zero? }
    end

    private_class_method :percentile, :errors
  end
end
