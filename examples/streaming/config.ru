# frozen_string_literal: true

require_relative "streaming"

run Streaming::App.new
