# frozen_string_literal: true

require "grape"

# Heights of a few mountains, as JSON.
class Mountains < Grape::API
  HEIGHTS = { "brocken" => 1141, "zugspitze" => 2962, "mont-blanc" => 4806 }.freeze

  format :json

  get("/") { HEIGHTS }

  params { requires :name, type: String, values: HEIGHTS.keys }
  get("/mountains/:name") { { name: params[:name], metres: HEIGHTS[params[:name]] } }
end
