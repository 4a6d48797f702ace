# frozen_string_literal: true

require_relative "highball_server"

# An application whose responses are held, and which publishes messages, as a config.ru.
#
# /events:: an event stream with the streams in the parameter `of`, or one with a name of `of_bytes`, after the body
#           in `body`
# /publish:: publishes the request's body to the stream `to`, `times` times, with its number in the
#             place of `%`; or to one with a name of `to_bytes`. With `when`, it makes `when`.begun, and waits for that
#             file
# /flood:: publishes for ever, in a thread
# /child:: publishes from a child process
# /address:: where its processes publish
# /page:: names a stream, and is no event stream
module HubApp
  CONFIG = <<~'RUBY'
    EVENTS = { "content-type" => "text/event-stream", "cache-control" => "no-cache" }
    TEXT = { "content-type" => "text/plain" }

    def publish(query, data)
      if query["when"]
        File.write("#{query["when"]}.begun", "")
        sleep 0.01 until File.exist?(query["when"])
      end
      ids = Array.new(query.fetch("times", 1).to_i) do |number|
        to = query["to_bytes"] ? "x" * query["to_bytes"].to_i : query.fetch("to", "ticks")
        Highball.publish(to, data.sub("%", number.to_s), event: query["event"])
      end
      [200, TEXT, [ids.last]]
    rescue Highball::PublishError => e
      [422, TEXT, [e.message]]
    end

    run(lambda do |env|
      query = Rack::Utils.parse_query(env["QUERY_STRING"])
      case env["PATH_INFO"]
      when "/events"
        of = query["of_bytes"] ? "x" * query["of_bytes"].to_i : query.fetch("of", "ticks")
        [200, EVENTS.merge("highball-stream" => of), [query.fetch("body", "")]]
      when "/publish" then publish(query, env["rack.input"]&.read.to_s)
      when "/flood"
        Thread.new { loop { Highball.publish("flood", "x" * query.fetch("bytes", 100).to_i) } }
        [200, TEXT, ["begun"]]
      when "/child"
        pid = fork { exit!(Highball.publish("ticks", "from a child").empty? ? 1 : 0) }
        [200, TEXT, [Process.wait2(pid).last.exitstatus.to_s]]
      when "/address" then [200, TEXT, [ENV.fetch("HIGHBALL_HUB")]]
      when "/page" then [200, TEXT.merge("highball-stream" => "ticks"), ["page"]]
      else [200, TEXT, ["hello #{env['HTTP_HIGHBALL_STREAM']}"]]
      end
    end)
  RUBY

  # What IO.popen and system run for this code: a process that finds its server by the application's folder.
  def self.script(code)
    environment = { "HIGHBALL_CONTROL" => HighballServer::CONTROL, "HIGHBALL_HUB" => nil }
    [environment, RbConfig.ruby, "-I", File.join(HighballServer::ROOT, "lib"), "-r", "highball", "-e", code]
  end
end
