# frozen_string_literal: true

# A view, and nothing else.
class ClocksController < ApplicationController
  def show
    @time = Time.now.utc
  end
end
