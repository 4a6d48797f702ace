# frozen_string_literal: true

require_relative "guest_book"

run GuestBook
