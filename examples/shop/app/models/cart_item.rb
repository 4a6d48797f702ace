# frozen_string_literal: true

class CartItem < ApplicationRecord
  belongs_to :cart, touch: true
  belongs_to :variant

  validates :pieces, inclusion: { in: 1..Cart::MOST_PIECES }
end
