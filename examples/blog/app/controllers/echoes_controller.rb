# frozen_string_literal: true

class EchoesController < ApplicationController
  def show; end
end
