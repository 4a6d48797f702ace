# frozen_string_literal: true

class QuestionsController < ApplicationController
  def create
    product = Product.find(params[:product_id])
    question = product.questions.build(params.require(:question).permit(:author, :body))
    notice = question.save ? "We will answer soon." : "A question needs a name and a text."
    redirect_to product_path(product, anchor: "questions"), notice: notice
  end
end
