# frozen_string_literal: true

module Highball
  # Ruby 3.1's IO.select does not ask the scheduler of fibers. Ruby 3.2's does.
  module SelectInFibers
    def select(*arguments)
      scheduler = Fiber.current_scheduler
      return super unless scheduler.respond_to?(:io_select)

      read, write, except, seconds = arguments
      scheduler.io_select(read, write, except, seconds)
    end
  end
end
