# frozen_string_literal: true

class StockLevel < ApplicationRecord
  belongs_to :warehouse
  belongs_to :variant
end
