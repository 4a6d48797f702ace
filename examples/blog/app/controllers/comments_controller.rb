# frozen_string_literal: true

class CommentsController < ApplicationController
  before_action :find_post

  def create
    @comment = Comment.new(comment_params.merge(post: @post))
    if @comment.save
      redirect_to post_path(@post, anchor: "comment-#{@comment.id}")
    else
      render "posts/show", status: :unprocessable_entity
    end
  end

  def destroy
    @post.comments.find(params[:id]).destroy!
    redirect_to @post, status: :see_other
  end

  private

  def find_post
    @post = Post.find(params[:post_id])
  end

  def comment_params
    params.require(:comment).permit(:author, :body)
  end
end
