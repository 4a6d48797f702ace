# frozen_string_literal: true

# The index of the full-text search. Its rows have the ids of their products.
class CreateProductTexts < ActiveRecord::Migration[6.1]
  def up
    execute "CREATE VIRTUAL TABLE product_texts USING fts5(name, brand, description)"
  end

  def down
    drop_table :product_texts
  end
end
