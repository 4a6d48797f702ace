# frozen_string_literal: true

class ApplicationController < ActionController::Base
  helper_method :current_cart

  rescue_from ActiveRecord::RecordNotFound do
    render file: Rails.public_path.join("404.html"), status: :not_found, layout: false
  end

  private

  # The visitor's cart, if there is one.
  def current_cart
    return @current_cart if defined?(@current_cart)

    @current_cart = session[:cart_id] && Cart.find_by(id: session[:cart_id])
  end

  def cart!
    current_cart || Cart.create!.tap do |cart|
      session[:cart_id] = cart.id
      @current_cart = cart
    end
  end
end
