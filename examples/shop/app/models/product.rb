# frozen_string_literal: true

class Product < ApplicationRecord
  ORDERS = {
    "newest" => { id: :desc }, "cheapest" => { price_cents: :asc, id: :asc },
    "dearest" => { price_cents: :desc, id: :asc }, "name" => { name: :asc, id: :asc }
  }.freeze

  belongs_to :category
  belongs_to :brand
  has_many :variants, -> { order(:price_cents, :id) }, dependent: :destroy, inverse_of: :product
  has_many :pictures, -> { order(:position) }, dependent: :destroy, inverse_of: :product
  has_many :taggings, dependent: :destroy
  has_many :tags, -> { order(:name) }, through: :taggings
  has_many :reviews, -> { order(id: :desc) }, dependent: :destroy, inverse_of: :product
  has_many :questions, -> { order(id: :desc) }, dependent: :destroy, inverse_of: :product

  validates :name, :description, presence: true
  validates :price_cents, numericality: { greater_than: 0 }

  scope :with_cards, -> { includes(:brand, :pictures) }
  scope :sorted, ->(order) { order(ORDERS.fetch(order, ORDERS["newest"])) }

  after_save :index_text

  # Products with all of these words (or words that begin with them), best matches first.
  def self.search(text)
    words = text.to_s.scan(/[[:alnum:]]+/).first(8)
    return none if words.empty?

    match = words.map { |word| %("#{word}"*) }.join(" ")
    joins("JOIN product_texts ON product_texts.rowid = products.id")
      .where("product_texts MATCH ?", match).order(Arel.sql("bm25(product_texts), products.id"))
  end

  # Fills the index of the search again.
  def self.index_all_texts
    connection.execute("DELETE FROM product_texts")
    connection.execute(<<~SQL)
      INSERT INTO product_texts (rowid, name, brand, description)
      SELECT products.id, products.name, brands.name, description FROM products JOIN brands ON brands.id = brand_id
    SQL
  end

  # Others that share tags with it, those with most in common first.
  def related(limit)
    Product.with_cards.joins(:taggings).where(taggings: { tag_id: taggings.map(&:tag_id) }).where.not(id: id)
           .group(:id).order(Arel.sql("COUNT(*) DESC, products.id")).limit(limit)
  end

  private

  def index_text
    self.class.connection.execute("DELETE FROM product_texts WHERE rowid = #{Integer(id)}")
    values = [id, name, brand.name, description].map { |value| self.class.connection.quote(value) }
    self.class.connection.execute(
      "INSERT INTO product_texts (rowid, name, brand, description) VALUES (#{values.join(', ')})"
    )
  end
end
