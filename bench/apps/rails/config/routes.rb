# frozen_string_literal: true

Rails.application.routes.draw do
  root "clocks#show"
  resources :stations, only: :show
  resource :visits, only: :show
end
