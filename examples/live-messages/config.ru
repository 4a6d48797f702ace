# frozen_string_literal: true

require "rack"

# A page on which all visitors see what each of them writes. Highball holds the event streams of `/messages`: they take
# no thread, and restarts do not end them.
class LiveMessages
  EVENTS = {
    "content-type" => "text/event-stream", "cache-control" => "no-cache", "highball-stream" => "messages"
  }.freeze
  MOST_CHARACTERS = 200

  def call(env)
    request = Rack::Request.new(env)
    case [request.request_method, request.path_info]
    when %w[GET /messages] then [200, EVENTS.dup, []]
    when %w[POST /messages] then publish(request.params["text"].to_s)
    else [404, { "content-type" => "text/plain" }, ["There is no #{request.path_info} here.\n"]]
    end
  end

  private

  def publish(text)
    Highball.publish("messages", text.scrub[0, MOST_CHARACTERS])
    [204, {}, []]
  end
end

run LiveMessages.new
