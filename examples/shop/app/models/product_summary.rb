# frozen_string_literal: true

# A product as JSON, for other programs.
class ProductSummary
  def initialize(product)
    @product = product
  end

  def as_json(*)
    { id: @product.id, name: @product.name, brand: @product.brand.name, category: @product.category.name,
      description: @product.description, tags: @product.tags.map(&:name), variants: variants }
  end

  private

  def variants
    @product.variants.map do |variant|
      { sku: variant.sku, name: variant.name, price_cents: variant.price_cents,
        pieces: variant.stock_levels.sum(&:pieces) }
    end
  end
end
