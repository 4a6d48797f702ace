# frozen_string_literal: true

# A shelf of the shop: a tree of two levels.
class Category < ApplicationRecord
  belongs_to :parent, class_name: "Category", optional: true
  has_many :children, -> { order(:position) }, class_name: "Category", foreign_key: :parent_id, inverse_of: :parent,
                                               dependent: :restrict_with_error
  has_many :products, dependent: :restrict_with_error

  validates :name, presence: true

  scope :roots, -> { where(parent: nil).order(:position) }

  # It and those below it.
  def self_and_children = Category.where(id: id).or(Category.where(parent_id: id))
end
