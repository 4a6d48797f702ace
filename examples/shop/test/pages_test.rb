# frozen_string_literal: true

require_relative "test_helper"

# What visitors read.
class PagesTest < ActionDispatch::IntegrationTest
  test "the first page shows new products, bestsellers and reviews" do
    get "/"
    assert_response :success
    assert_select "article.card", 16
    assert_select "h3", text: Product.last.name
    assert_select "blockquote", 5
    assert_select ".categories > ul > li", 4
  end

  test "the bestsellers are what was ordered most" do
    sold = OrderItem.joins(:variant).group("variants.product_id").sum(:pieces)
    get "/"
    best = css_select("section:nth-of-type(2) h3 a").map { |link| link["href"][/\d+/].to_i }
    assert_equal(sold.values.max(8), best.map { |id| sold[id] })
  end

  test "a product has its variants, pictures, reviews and questions" do
    product = Product.find(7)
    get "/products/7"
    assert_select "h1", product.name
    assert_select ".variants tbody tr", 3
    assert_select ".pictures svg", 3
    assert_select ".review", [product.reviews_count, 5].min
    assert_select ".question .answer", 1
    assert_select "dl.summary meter", 5
    assert_equal product.reviews.count, product.reviews_count
  end

  test "related products share tags with it" do
    related = Product.find(7).related(4).to_a
    assert_equal 4, related.length
    related.each { |one| assert_predicate one.tags & Product.find(7).tags, :any? }
  end

  test "a product as JSON" do
    get "/products/7.json"
    summary = response.parsed_body
    assert_equal [Product.find(7).name, 3], [summary["name"], summary["variants"].length]
    assert_equal(Product.find(7).variants.map(&:sku), summary["variants"].map { |one| one["sku"] })
  end

  test "a category shows what is below it, filtered, sorted and by page" do
    get "/categories/1", params: { order: "cheapest" }
    assert_select ".cards .card", 24
    assert_select ".pages", /1 2 3/
    prices = css_select(".card .price").map { |price| price.text[/[\d.]+/].to_f }
    assert_equal prices.sort, prices
    get "/categories/1", params: { order: "cheapest", page: 2 }
    assert_operator css_select(".card .price").first.text[/[\d.]+/].to_f, :>=, prices.last
    brand = Product.where(category: Category.find(1).children).order(:price_cents).first.brand
    get "/categories/1", params: { brand: brand.id, most: 100 }
    assert_select ".card .meta" do |lines|
      lines.each { |line| assert_includes line.text, brand.name }
    end
  end

  test "an order that is unknown and a page that is not there are no errors" do
    get "/categories/1", params: { order: "; DROP", page: 999 }
    assert_response :success
    %w[/products/999999 /pages/nothing /orders/unknown].each do |path|
      get path
      assert_response :not_found, path
    end
  end

  test "pages do not change when they are asked again" do
    %w[/ /products /categories/2 /brands /brands/3 /products/9/reviews /pages/about /orders/order-0001].each do |path|
      bodies = Array.new(2) do
        get path
        response.body.gsub(/<meta name="csrf-token"[^>]*>|name="authenticity_token"[^>]*>/, "")
      end
      assert_equal(*bodies, path)
    end
  end
end
