# frozen_string_literal: true

# Server-sent events.
class NewsController < ApplicationController
  include ActionController::Live

  LIMIT = 20 # seconds

  def show; end

  # A first event, and one with the next comment that this process creates.
  def events
    response.headers["Content-Type"] = "text/event-stream"
    response.headers["Last-Modified"] = Time.now.httpdate # or Rack::ETag would wait for the end
    news = Queue.new
    note = ->(*, comment) { news << comment[:text] }
    ActiveSupport::Notifications.subscribed(note, "comment.album") { wait_for(news) }
  ensure
    response.stream.close
  end

  private

  def wait_for(news)
    deadline = Time.now + LIMIT
    send_event("Waiting for news.")
    sleep 0.01 while news.empty? && Time.now < deadline
    send_event(news.pop) unless news.empty?
  end

  def send_event(text) = response.stream.write("data: #{text}\n\n")
end
