# frozen_string_literal: true

class Station < ApplicationRecord
end
