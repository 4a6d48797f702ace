# frozen_string_literal: true

class CartItemsController < ApplicationController
  def create
    variant = Variant.find(params.require(:variant_id))
    cart!.add(variant, params.fetch(:pieces, 1).to_i.clamp(1, Cart::MOST_PIECES))
    redirect_to cart_path, notice: "#{variant.product.name} is in your cart."
  end

  def update
    item = cart!.items.find(params[:id])
    item.update!(pieces: params.require(:pieces).to_i.clamp(1, Cart::MOST_PIECES))
    redirect_to cart_path
  end

  def destroy
    cart!.items.find(params[:id]).destroy!
    redirect_to cart_path, status: :see_other
  end
end
