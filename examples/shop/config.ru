# frozen_string_literal: true

require_relative "config/environment"

Shop.prepare_database
run Rails.application
