# frozen_string_literal: true

require "test_helper"

class CommentsChannelTest < ActionCable::Channel::TestCase
  test "streams the comments of a photo" do
    subscribe photo: photos(:harbour).id
    assert_has_stream_for photos(:harbour)
  end
end
