# frozen_string_literal: true

# What the shop sells.
class CreateCatalogue < ActiveRecord::Migration[6.1]
  def change
    create_table :categories do |t|
      t.references :parent, foreign_key: { to_table: :categories }
      t.string :name, null: false
      t.integer :position, null: false, default: 0
      t.timestamps
    end

    create_table :brands do |t|
      t.string :name, null: false
      t.string :country, null: false
      t.text :history, null: false
      t.timestamps
    end

    create_products
    create_tags
  end

  private

  def create_products
    create_table :products do |t|
      t.references :category, null: false, foreign_key: true
      t.references :brand, null: false, foreign_key: true
      t.string :name, null: false
      t.text :description, null: false
      t.integer :reviews_count, null: false, default: 0
      t.integer :price_cents, null: false, index: true # of its cheapest variant
      t.timestamps
    end

    create_table :variants do |t|
      t.references :product, null: false, foreign_key: true
      t.string :name, null: false
      t.string :sku, null: false, index: { unique: true }
      t.integer :price_cents, null: false
      t.timestamps
    end

    create_table :pictures do |t|
      t.references :product, null: false, foreign_key: true
      t.string :caption, null: false
      t.integer :hue, null: false
      t.integer :position, null: false
    end
  end

  def create_tags
    create_table :tags do |t|
      t.string :name, null: false, index: { unique: true }
    end

    create_table :taggings do |t|
      t.references :product, null: false, foreign_key: true
      t.references :tag, null: false, foreign_key: true
      t.index %i[product_id tag_id], unique: true
    end
  end
end
