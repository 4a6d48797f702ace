# frozen_string_literal: true

require_relative "test_helper"

class SearchTest < ActionDispatch::IntegrationTest
  test "finds products with all words, by their beginnings" do
    get "/search", params: { q: "STEAM bra" }
    found = css_select(".card h3 a").map { |link| Product.find(link["href"][/\d+/]) }
    assert_predicate found, :any?
    found.each do |product|
      text = [product.name, product.brand.name, product.description].join(" ")
      assert_match(/\bsteam/i, text)
      assert_match(/\bbra/i, text)
    end
  end

  test "signs of the query language are no part of a query" do
    ['"', "'; --", "name:steam OR", "NEAR(", "*", "", "a" * 500].each do |text|
      get "/search", params: { q: text }
      assert_response :success, text
    end
  end

  test "finds what has changed" do
    product = Product.find(5)
    assert_not_includes Product.search("zeppelin"), product
    product.update!(description: "Not a zeppelin.")
    assert_equal [product], Product.search("zeppelin").to_a
    product.update!(description: "Something else.")
    assert_empty Product.search("zeppelin").to_a
  end
end
