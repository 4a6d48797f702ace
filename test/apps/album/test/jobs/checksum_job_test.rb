# frozen_string_literal: true

require "test_helper"

class ChecksumJobTest < ActiveJob::TestCase
  test "writes the checksum of the file" do
    photo = photos(:harbour)
    photo.image.attach(io: StringIO.new("as bytes"), filename: "harbour.jpg")
    ChecksumJob.perform_now(photo)
    assert_equal Digest::SHA256.hexdigest("as bytes"), photo.reload.checksum
  end
end
