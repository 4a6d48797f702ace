# frozen_string_literal: true

# A product in one of its scales or colours: what is put into a cart.
class Variant < ApplicationRecord
  belongs_to :product
  has_many :stock_levels, dependent: :destroy

  validates :name, :sku, presence: true
  validates :price_cents, numericality: { greater_than: 0 }

  # The warehouse that has this number of pieces and is nearest.
  def nearest_stock(pieces = 1)
    stock_levels.select { |level| level.pieces >= pieces }.min_by { |level| level.warehouse.days }
  end
end
