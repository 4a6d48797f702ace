# frozen_string_literal: true

require "test_helper"

class PhotoTest < ActiveSupport::TestCase
  test "has a title" do
    assert_not Photo.new.valid?
    assert photos(:harbour).valid?
  end
end
