# frozen_string_literal: true

class Cart < ApplicationRecord
  MOST_PIECES = 99

  belongs_to :coupon, optional: true
  has_many :items, -> { order(:id) }, class_name: "CartItem", dependent: :destroy, inverse_of: :cart

  def add(variant, pieces)
    item = items.find_or_initialize_by(variant: variant)
    item.pieces = [(item.persisted? ? item.pieces : 0) + pieces, MOST_PIECES].min
    item.save!
  end

  def pieces = items.sum(:pieces)
  def subtotal_cents = items.sum { |item| item.pieces * item.variant.price_cents }
  def discount_cents = coupon ? coupon.discount_cents(subtotal_cents) : 0
  def total_cents = subtotal_cents - discount_cents
end
