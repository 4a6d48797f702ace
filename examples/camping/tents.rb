# frozen_string_literal: true

require "camping"

Camping.goes :Tents

# A page of Camping's own kind: a controller whose name is its path.
module Tents
  module Controllers
    class Index
      def get
        "<!DOCTYPE html><title>Tents</title><h1>Camping</h1><p>There is room for #{Places::FREE} more tents.</p>\n"
      end
    end
  end

  module Places
    FREE = 7
  end
end
