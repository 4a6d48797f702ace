# frozen_string_literal: true

class Shipment < ApplicationRecord
  belongs_to :order
  belongs_to :warehouse
end
