# frozen_string_literal: true

class PhotosController < ApplicationController
  def index
    @photos = Photo.order(:id)
  end

  def show
    @photo = Photo.find(params[:id])
  end

  def new
    @photo = Photo.new
  end

  def create
    @photo = Photo.new(params.require(:photo).permit(:title, :image))
    if @photo.save
      ChecksumJob.perform_later(@photo) if @photo.image.attached?
      redirect_to @photo, notice: "Photo was successfully created."
    else
      render :new, status: :unprocessable_entity
    end
  end
end
