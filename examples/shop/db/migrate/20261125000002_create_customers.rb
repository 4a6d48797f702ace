# frozen_string_literal: true

# Who buys it, and what people write about it.
class CreateCustomers < ActiveRecord::Migration[6.1]
  def change
    create_table :customers do |t|
      t.string :name, null: false
      t.string :email, null: false, index: { unique: true }
      t.timestamps
    end

    create_table :addresses do |t|
      t.references :customer, null: false, foreign_key: true
      t.string :street, null: false
      t.string :town, null: false
      t.string :postcode, null: false
      t.timestamps
    end

    create_texts
  end

  private

  def create_texts
    create_table :reviews do |t|
      t.references :product, null: false, foreign_key: true
      t.references :customer, foreign_key: true
      t.string :author, null: false
      t.integer :stars, null: false
      t.text :body, null: false
      t.timestamps
    end

    create_table :questions do |t|
      t.references :product, null: false, foreign_key: true
      t.string :author, null: false
      t.text :body, null: false
      t.timestamps
    end

    create_table :answers do |t|
      t.references :question, null: false, foreign_key: true
      t.string :author, null: false
      t.text :body, null: false
      t.timestamps
    end

    create_table :pages do |t|
      t.string :slug, null: false, index: { unique: true }
      t.string :title, null: false
      t.text :body, null: false
      t.timestamps
    end
  end
end
