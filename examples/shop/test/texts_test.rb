# frozen_string_literal: true

require_relative "test_helper"

# What visitors write.
class TextsTest < ActionDispatch::IntegrationTest
  test "a review changes the cached cards of its product" do
    product = Product.find(240)
    get "/"
    assert_select ".card .meta", /#{product.reviews_count} review/
    post "/products/240/reviews", params: { review: { author: "Ada", stars: 5, body: "<b>Good</b>" } }
    follow_redirect!
    assert_select ".review strong", "Ada"
    assert_select ".review b", text: "Good", count: 1 # sanitised, as simple_format allows it
    get "/"
    assert_select ".card .meta", /#{product.reviews_count + 1} review/
  end

  test "a review without stars is shown again" do
    post "/products/2/reviews", params: { review: { author: "Ada", stars: 9, body: "" } }
    assert_response :unprocessable_entity
    assert_select ".problems li", 2
  end

  test "scripts in texts are not run" do
    post "/products/2/questions", params: { question: { author: "<script>1</script>", body: "<script>2</script>" } }
    get "/products/2"
    assert_select "script", 0
    assert_select ".question", /<script>2/
  end
end
