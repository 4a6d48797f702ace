# frozen_string_literal: true

Rails.application.routes.draw do
  root "posts#index"

  resources :posts do
    resources :comments, only: %i[create destroy]
    get :file, on: :member
  end
  get "echo", to: "echoes#show"
end
