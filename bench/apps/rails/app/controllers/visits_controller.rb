# frozen_string_literal: true

# A view of what is remembered of a visitor, where anything is.
class VisitsController < ApplicationController
  def show
    @visits = sessions? ? count : 1
  end

  private

  def sessions?
    Rails.configuration.session_store.present?
  end

  def count
    session[:visits] = session.fetch(:visits, 0) + 1
  end
end
