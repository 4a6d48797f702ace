# frozen_string_literal: true

class Question < ApplicationRecord
  belongs_to :product, touch: true
  has_many :answers, -> { order(:id) }, dependent: :destroy, inverse_of: :question

  validates :author, :body, presence: true
end
