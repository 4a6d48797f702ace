# frozen_string_literal: true

require_relative "config/environment"

Blog.prepare_database
run Rails.application
