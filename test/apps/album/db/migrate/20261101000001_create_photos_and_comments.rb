# frozen_string_literal: true

class CreatePhotosAndComments < ActiveRecord::Migration[6.1]
  def change
    create_table :photos do |t|
      t.string :title, null: false
      t.string :checksum
      t.timestamps
    end
    create_table :comments do |t|
      t.references :photo, null: false, foreign_key: true
      t.string :text, null: false
      t.timestamps
    end
  end
end
