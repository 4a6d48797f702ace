# frozen_string_literal: true

# A view of one row.
class StationsController < ApplicationController
  def show
    @station = Station.find(params[:id])
  end
end
