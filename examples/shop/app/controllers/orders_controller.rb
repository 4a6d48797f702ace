# frozen_string_literal: true

class OrdersController < ApplicationController
  def new
    return redirect_to(cart_path, notice: "Your cart is empty.") if current_cart.nil? || current_cart.items.none?

    @customer = Customer.new
    @address = Address.new
  end

  def create
    @customer = Customer.find_or_initialize_by(email: customer_params[:email])
    @customer.name = customer_params[:name]
    @address = @customer.addresses.build(params.require(:address).permit(:street, :town, :postcode))
    return render(:new, status: :unprocessable_entity) unless @customer.save

    redirect_to order_path(Order.place(cart!, @customer, @address).token), notice: "Thank you for your order."
  rescue Order::OutOfStock => e
    redirect_to cart_path, notice: "#{e.message} is not in stock in this quantity."
  end

  def show
    @order = Order.includes(:payment, :address, shipment: :warehouse, items: { variant: :product })
                  .find_by!(token: params[:token])
  end

  private

  def customer_params = params.require(:customer).permit(:name, :email)
end
