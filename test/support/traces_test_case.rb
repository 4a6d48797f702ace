# frozen_string_literal: true

require_relative "e2e_test"
require_relative "trace_collector"

# A test of traces: an application, and a collector.
class TracesTestCase < E2ETest
  APP = <<~'RUBY'
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/slow" then sleep 0.2
      when "/raise" then raise "no luck"
      when "/die" then Process.kill("KILL", Process.pid)
      when "/hang" then sleep 5
      when "/gate" then sleep 0.01 until File.exist?("go")
      when "/hijack"
        env["rack.hijack"].call
        io = env["rack.hijack_io"]
        io.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhijacked")
        io.close
        next [200, {}, []]
      when "/stream"
        body = Enumerator.new { |lines| 3.times { |number| lines << "#{number}\n"; sleep 0.1 } }
        next [200, { "content-type" => "text/plain" }, body]
      when "/cut"
        body = Enumerator.new { |lines| lines << "one\n"; sleep 0.2; raise "cut off" }
        next [200, { "content-type" => "text/plain" }, body]
      when "/held"
        next [200, { "content-type" => "text/event-stream", "highball-stream" => "ticks" }, [": begun\n\n"]]
      when "/cached"
        next [200, { "cache-control" => "public, max-age=600" }, ["cached"]]
      end
      [200, {}, [env.fetch("HTTP_TRACEPARENT", "none"), "\n", env.fetch("HTTP_TRACESTATE", "none")]]
    end)
  RUBY

  TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
  CALLER = "00f067aa0ba902b7"

  def setup
    super
    skip "root's server opens no connections" if OwnProcesses.spawner?
    skip "opentelemetry-proto is not installed (bin/test validators)" unless TraceCollector.available?
    @collectors = []
  end

  def teardown
    super
    @collectors&.each(&:close)
  end

  private

  def start_collector(...) = TraceCollector.new(...).tap { |collector| @collectors << collector }

  def app = @app ||= folder_with("config.ru" => APP, "public/file.txt" => "a file\n")

  # Serves the application, with spans for `to`.
  def traced(to, *options, **settings)
    serve(app, "--otlp-endpoint", to.endpoint, *options, ready: "/ready", **settings)
  end

  def parent(flags = "01", trace = TRACE) = { "traceparent" => "00-#{trace}-#{CALLER}-#{flags}" }

  def traces_of(server) = server.full_status.fetch("traces")
end
