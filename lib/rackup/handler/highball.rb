# frozen_string_literal: true

require_relative "../../highball/handler"

# For Rackup 2 and later.
module Rackup
  module Handler
    Highball = ::Highball::Handler
    register(:highball, Highball)
  end
end
