# frozen_string_literal: true

class Warehouse < ApplicationRecord
  has_many :stock_levels, dependent: :destroy
end
