# frozen_string_literal: true

require_relative "../../highball/handler"

# For Rackup 2 and later.
module Rackup
  module Handler
    # Rails shows the last part of its name.
    module Highball
      extend ::Highball::Handler
    end
    register(:highball, Highball)
  end
end
