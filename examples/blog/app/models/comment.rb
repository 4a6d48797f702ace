# frozen_string_literal: true

class Comment < ApplicationRecord
  belongs_to :post

  validates :author, :body, presence: true
end
