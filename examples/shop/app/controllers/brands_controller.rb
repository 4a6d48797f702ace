# frozen_string_literal: true

class BrandsController < ApplicationController
  include Listing

  def index
    @brands = Brand.order(:name)
    @counts = Product.group(:brand_id).count
  end

  def show
    @brand = Brand.find(params[:id])
    list(@brand.products)
  end
end
