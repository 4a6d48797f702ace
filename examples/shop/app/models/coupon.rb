# frozen_string_literal: true

class Coupon < ApplicationRecord
  scope :valid_on, ->(date) { where("ends_on >= ?", date) }

  def discount_cents(cents) = cents * percent / 100
end
