# frozen_string_literal: true

require_relative "../../highball/handler"

# For Rack 2, whose handlers are found here.
module Rack
  module Handler
    Highball = ::Highball::Handler
    register(:highball, "Rack::Handler::Highball") if respond_to?(:register)
  end
end
