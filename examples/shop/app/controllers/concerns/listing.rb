# frozen_string_literal: true

# Lists of products, by page and in an order that the visitor chooses.
module Listing
  PER_PAGE = 24

  private

  # Sets what views/products/_list shows.
  def list(products)
    @order = Product::ORDERS.key?(params[:order]) ? params[:order] : "newest"
    list_as_sorted(products.sorted(@order))
  end

  def list_as_sorted(products)
    @total = products.count
    @pages = [@total.fdiv(PER_PAGE).ceil, 1].max
    @page = params[:page].to_i.clamp(1, @pages)
    @products = products.with_cards.limit(PER_PAGE).offset((@page - 1) * PER_PAGE)
  end
end
