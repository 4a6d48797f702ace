# frozen_string_literal: true

class HomeController < ApplicationController
  BESTSELLERS = 8

  def show
    @newest = Product.with_cards.sorted("newest").limit(8)
    @bestsellers = Product.with_cards.where(id: bestseller_ids).index_by(&:id).values_at(*bestseller_ids).compact
    @reviews = Review.includes(:product).order(id: :desc).limit(5)
  end

  private

  def bestseller_ids
    @bestseller_ids ||= Rails.cache.fetch("bestsellers", expires_in: 10.minutes) do
      Variant.joins("JOIN order_items ON order_items.variant_id = variants.id").group(:product_id)
             .order(Arel.sql("SUM(order_items.pieces) DESC, product_id")).limit(BESTSELLERS).pluck(:product_id)
    end
  end
end
