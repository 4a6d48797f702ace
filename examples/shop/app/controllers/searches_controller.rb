# frozen_string_literal: true

class SearchesController < ApplicationController
  include Listing

  def show
    @text = params[:q].to_s.first(100)
    list_as_sorted(Product.search(@text))
  end
end
