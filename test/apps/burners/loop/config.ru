# frozen_string_literal: true

require_relative "burner"

run ->(_env) { burn }
