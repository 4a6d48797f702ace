# frozen_string_literal: true

class ReviewsController < ApplicationController
  before_action { @product = Product.find(params[:product_id]) }

  def index
    @summary = @product.reviews.summary
    @reviews = @product.reviews.limit(100)
  end

  def create
    @review = @product.reviews.build(params.require(:review).permit(:author, :stars, :body))
    if @review.save
      redirect_to product_path(@product, anchor: "reviews"), notice: "Thank you for your review."
    else
      render :new, status: :unprocessable_entity
    end
  end
end
