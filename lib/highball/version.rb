# frozen_string_literal: true

module Highball
  VERSION = "0.1.0"
end
