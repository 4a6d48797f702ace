# frozen_string_literal: true

require_relative "../../highball/handler"

# For Rack 2, whose handlers are found here.
module Rack
  module Handler
    # Rails shows the last part of its name.
    module Highball
      extend ::Highball::Handler
    end
    register(:highball, "Rack::Handler::Highball") if respond_to?(:register)
  end
end
