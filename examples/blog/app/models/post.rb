# frozen_string_literal: true

class Post < ApplicationRecord
  has_many :comments, -> { order(:id) }, dependent: :destroy
  has_one_attached :file

  validates :title, presence: true, length: { maximum: 200 }
  validates :body, presence: true

  scope :newest_first, -> { order(id: :desc) }
end
