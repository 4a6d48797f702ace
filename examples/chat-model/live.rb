# frozen_string_literal: true

require "action_controller"
require_relative "chat"

module Chat
  # The same in Rails: the action runs in a separate thread, and writes to the response.
  class LiveController < ActionController::Base
    include ActionController::Live

    def show
      response.content_type = HEADERS["content-type"]
      response.headers["Cache-Control"] = HEADERS["cache-control"]
      Model.new(request.query_string).each { |event| response.stream.write(event) }
    rescue ActionController::Live::ClientDisconnected
      nil # the visitor has left
    ensure
      response.stream.close
    end
  end
end
