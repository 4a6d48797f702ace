# frozen_string_literal: true

class CommentsController < ApplicationController
  def create
    photo = Photo.find(params[:photo_id])
    photo.comments.create!(params.require(:comment).permit(:text))
    redirect_to photo
  end
end
