# frozen_string_literal: true

# Carts, orders, and where the goods are.
class CreateSales < ActiveRecord::Migration[6.1]
  def change
    create_stock
    create_carts
    create_orders
  end

  private

  def create_stock
    create_table :warehouses do |t|
      t.string :town, null: false
      t.integer :days, null: false # until what is sent from there arrives
    end

    create_table :stock_levels do |t|
      t.references :warehouse, null: false, foreign_key: true
      t.references :variant, null: false, foreign_key: true
      t.integer :pieces, null: false, default: 0
      t.index %i[variant_id warehouse_id], unique: true
    end
  end

  def create_carts
    create_table :coupons do |t|
      t.string :code, null: false, index: { unique: true }
      t.integer :percent, null: false
      t.date :ends_on, null: false
    end

    create_table :carts do |t|
      t.references :coupon, foreign_key: true
      t.timestamps
    end

    create_table :cart_items do |t|
      t.references :cart, null: false, foreign_key: true
      t.references :variant, null: false, foreign_key: true
      t.integer :pieces, null: false, default: 1
      t.timestamps
      t.index %i[cart_id variant_id], unique: true
    end
  end

  def create_orders
    create_table :orders do |t|
      t.references :customer, null: false, foreign_key: true
      t.references :address, null: false, foreign_key: true
      t.string :token, null: false, index: { unique: true }
      t.integer :discount_cents, null: false, default: 0
      t.timestamps
    end

    create_table :order_items do |t|
      t.references :order, null: false, foreign_key: true
      t.references :variant, null: false, foreign_key: true
      t.integer :pieces, null: false
      t.integer :price_cents, null: false # as it was then
    end

    create_table :payments do |t|
      t.references :order, null: false, foreign_key: true
      t.string :kind, null: false
      t.integer :amount_cents, null: false
      t.timestamps
    end

    create_table :shipments do |t|
      t.references :order, null: false, foreign_key: true
      t.references :warehouse, null: false, foreign_key: true
      t.date :arrives_on, null: false
      t.timestamps
    end
  end
end
