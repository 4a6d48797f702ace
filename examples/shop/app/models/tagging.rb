# frozen_string_literal: true

class Tagging < ApplicationRecord
  belongs_to :product
  belongs_to :tag
end
