# frozen_string_literal: true

module ShopHelper
  def price(cents) = number_to_currency(cents / 100.0, unit: "€")

  def stars(mean)
    full = mean.to_f.round
    tag.span(("★" * full) + ("☆" * (5 - full)), class: "stars", title: mean ? format("%.1f of 5", mean) : "no reviews")
  end

  # "in stock, arrives in 2 days"
  def availability(variant)
    stock = variant.nearest_stock
    return tag.span("sold out", class: "out") unless stock

    tag.span("in stock, arrives in #{pluralize(stock.warehouse.days, 'day')}", class: "in")
  end

  def order_link(name)
    link_to_unless @order == name, name, url_for(request.query_parameters.except("page").merge(order: name))
  end

  def page_link(number, text = number)
    link_to_unless number == @page, text, url_for(request.query_parameters.merge(page: number))
  end
end
