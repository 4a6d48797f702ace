# frozen_string_literal: true

class Order < ApplicationRecord
  class OutOfStock < StandardError; end

  belongs_to :customer
  belongs_to :address
  has_many :items, -> { order(:id) }, class_name: "OrderItem", dependent: :destroy, inverse_of: :order
  has_one :payment, dependent: :destroy
  has_one :shipment, dependent: :destroy

  has_secure_token

  # Buys what is in the cart: takes the goods from one warehouse and empties the cart, or does nothing of it.
  def self.place(cart, customer, address)
    transaction do
      order = create!(customer: customer, address: address, discount_cents: cart.discount_cents)
      warehouses = cart.items.includes(variant: [:product, { stock_levels: :warehouse }]).map do |item|
        order.take(item)
      end
      slowest = warehouses.max_by(&:days)
      order.create_payment!(kind: "invoice", amount_cents: order.total_cents)
      order.create_shipment!(warehouse: slowest, arrives_on: Date.current + slowest.days)
      cart.items.destroy_all
      cart.update!(coupon: nil)
      order
    end
  end

  # Adds an item of a cart, and returns the warehouse that it comes from.
  def take(item)
    stock = item.variant.nearest_stock(item.pieces)
    raise OutOfStock, item.variant.product.name unless stock

    stock.update!(pieces: stock.pieces - item.pieces)
    items.create!(variant: item.variant, pieces: item.pieces, price_cents: item.variant.price_cents)
    stock.warehouse
  end

  def subtotal_cents = items.sum { |item| item.pieces * item.price_cents }
  def total_cents = subtotal_cents - discount_cents
end
