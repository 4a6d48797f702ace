# frozen_string_literal: true

class Photo < ApplicationRecord
  has_one_attached :image
  has_many :comments, dependent: :destroy

  validates :title, presence: true
end
