# frozen_string_literal: true

class PostsController < ApplicationController
  before_action :find_post, only: %i[show edit update destroy file]

  def index
    @posts = Post.newest_first.with_attached_file.limit(50)
    @comment_counts = Comment.where(post: @posts).group(:post_id).count
  end

  def show
    @comment = Comment.new
  end

  # The file at an address that lasts. (Active Storage's own lead to addresses that end after minutes.)
  def file
    return head(:not_found) unless @post.file.attached?

    blob = @post.file.blob
    send_file blob.service.path_for(blob.key), filename: blob.filename.to_s, type: blob.content_type
  end

  def new
    @post = Post.new
  end

  def edit; end

  def create
    @post = Post.new(post_params)
    if @post.save
      redirect_to @post, notice: "Published."
    else
      render :new, status: :unprocessable_entity
    end
  end

  def update
    if @post.update(post_params)
      redirect_to @post, notice: "Saved."
    else
      render :edit, status: :unprocessable_entity
    end
  end

  def destroy
    @post.destroy!
    redirect_to root_path, status: :see_other, notice: "Deleted."
  end

  private

  def find_post
    @post = Post.find(params[:id])
  end

  def post_params
    params.require(:post).permit(:title, :body, :file)
  end
end
