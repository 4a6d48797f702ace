# frozen_string_literal: true

class Address < ApplicationRecord
  belongs_to :customer

  validates :street, :town, :postcode, presence: true
end
