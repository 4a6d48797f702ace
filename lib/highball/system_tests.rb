# frozen_string_literal: true

require_relative "capybara"

# Rails' system tests take Puma if nothing else is chosen before.
is_free = Capybara.server == Capybara.servers[:default]
Capybara.server = :highball if is_free && Highball::DefaultHandler.wanted?
