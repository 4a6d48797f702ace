# frozen_string_literal: true

class CategoriesController < ApplicationController
  include Listing

  def show
    @category = Category.includes(:parent, :children).find(params[:id])
    products = Product.where(category: @category.self_and_children)
    @brands = Brand.where(id: products.select(:brand_id)).order(:name)
    products = products.where(brand_id: params[:brand]) if params[:brand].present?
    products = products.where(price_cents: ..(params[:most].to_i * 100)) if params[:most].present?
    list(products)
  end
end
