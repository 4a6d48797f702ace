# frozen_string_literal: true

class Review < ApplicationRecord
  STARS = (1..5)

  belongs_to :product, counter_cache: true, touch: true
  belongs_to :customer, optional: true

  validates :author, :body, presence: true
  validates :stars, inclusion: { in: STARS }

  # Their mean, and the number of reviews with each number of stars.
  def self.summary
    counts = unscope(:order).group(:stars).count
    total = counts.values.sum
    mean = counts.sum { |stars, count| stars * count }.fdiv(total) if total.positive?
    { mean: mean, total: total, counts: STARS.index_with { |stars| counts.fetch(stars, 0) } }
  end
end
