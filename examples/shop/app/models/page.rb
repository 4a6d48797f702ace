# frozen_string_literal: true

# A text of the shop itself, such as about delivery.
class Page < ApplicationRecord
  validates :slug, :title, :body, presence: true

  def to_param = slug
end
