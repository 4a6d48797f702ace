# frozen_string_literal: true

require_relative "test_helper"

class BuyingTest < ActionDispatch::IntegrationTest
  CUSTOMER = { customer: { name: "Ada", email: "ada@example.org" },
               address: { street: "Line 1", postcode: "1000", town: "Bern" } }.freeze

  test "from the product to the order" do
    variant = Product.find(3).variants.first
    before = variant.stock_levels.sum(:pieces)
    post "/cart/items", params: { variant_id: variant.id, pieces: 3 }
    follow_redirect!
    assert_select ".notice", /is in your cart/
    assert_select "#cart-link", "Cart (3)"
    post "/cart/coupon", params: { code: "steam10" }
    follow_redirect!
    assert_select ".total dd", 3
    post "/orders", params: CUSTOMER
    follow_redirect!
    assert_select "h1", "Your order"
    order = Order.last
    subtotal = 3 * variant.price_cents
    assert_equal [subtotal, subtotal - (subtotal / 10)], [order.subtotal_cents, order.payment.amount_cents]
    assert_equal before - 3, variant.stock_levels.sum(:pieces)
    assert_equal "Hamburg", order.shipment.warehouse.town
    get "/cart"
    assert_select "main p", /Your cart is empty/
  end

  test "the cart changes" do
    variant = Variant.first
    2.times { post "/cart/items", params: { variant_id: variant.id } }
    item = CartItem.last
    assert_equal 2, item.pieces
    patch "/cart/items/#{item.id}", params: { pieces: 500 }
    assert_equal Cart::MOST_PIECES, item.reload.pieces
    delete "/cart/items/#{item.id}"
    assert_not CartItem.exists?(item.id)
  end

  test "nothing happens if one of the goods is out of stock" do
    first, second = Variant.first(2)
    second.stock_levels.each { |level| level.update!(pieces: 1) }
    [first, second].each { |variant| post "/cart/items", params: { variant_id: variant.id, pieces: 2 } }
    assert_no_difference(["Order.count", "StockLevel.sum(:pieces)"]) { post "/orders", params: CUSTOMER }
    follow_redirect!
    assert_select ".notice", /#{second.product.name} is not in stock/
    assert_select "#cart-link", "Cart (4)"
  end

  test "an old coupon and an order without an address are refused" do
    post "/cart/items", params: { variant_id: 1 }
    post "/cart/coupon", params: { code: "LATE" }
    assert_nil Cart.last.coupon
    post "/orders", params: CUSTOMER.deep_merge(address: { street: "" })
    assert_response :unprocessable_entity
    assert_select ".problems"
  end

  test "a visitor neither sees nor changes the cart of another" do
    post "/cart/items", params: { variant_id: 1 }
    item = CartItem.last
    reset!
    get "/cart"
    assert_select "main p", /Your cart is empty/
    delete "/cart/items/#{item.id}"
    assert_response :not_found
    assert CartItem.exists?(item.id)
  end
end
