# frozen_string_literal: true

require_relative "api"

run Mountains
