# frozen_string_literal: true

# A drawing of a product: pages draw it in this hue.
class Picture < ApplicationRecord
  belongs_to :product
end
