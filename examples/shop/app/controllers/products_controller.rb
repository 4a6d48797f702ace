# frozen_string_literal: true

class ProductsController < ApplicationController
  include Listing

  REVIEWS = 5

  def index
    list(Product.all)
  end

  def show
    @product = Product.includes(:brand, :tags, :pictures, category: :parent, variants: { stock_levels: :warehouse })
                      .find(params[:id])
    return render(json: ProductSummary.new(@product)) if request.format.json?

    @reviews = @product.reviews.limit(REVIEWS)
    @summary = @product.reviews.summary
    @questions = @product.questions.includes(:answers)
    @review = Review.new
    @question = Question.new
  end
end
