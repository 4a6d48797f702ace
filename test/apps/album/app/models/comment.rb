# frozen_string_literal: true

class Comment < ApplicationRecord
  belongs_to :photo

  validates :text, presence: true

  after_create_commit do
    CommentsChannel.broadcast_to(photo, text: text)
    ActiveSupport::Notifications.instrument("comment.album", text: text)
  end
end
