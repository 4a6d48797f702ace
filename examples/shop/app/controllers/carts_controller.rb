# frozen_string_literal: true

class CartsController < ApplicationController
  def show
    @items = current_cart ? current_cart.items.includes(variant: :product) : CartItem.none
  end
end
