# frozen_string_literal: true

# The checksum of a photo's file, which takes long for large ones.
class ChecksumJob < ApplicationJob
  def perform(photo)
    photo.image.open { |file| photo.update!(checksum: Digest::SHA256.file(file.path).hexdigest) }
  end
end
