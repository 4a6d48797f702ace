# frozen_string_literal: true

class CartCouponsController < ApplicationController
  def create
    coupon = Coupon.valid_on(Date.current).find_by(code: params[:code].to_s.strip.upcase)
    cart!.update!(coupon: coupon) if coupon
    redirect_to cart_path, notice: coupon ? "#{coupon.percent} % off." : "There is no such coupon."
  end

  def destroy
    cart!.update!(coupon: nil)
    redirect_to cart_path, status: :see_other
  end
end
