# frozen_string_literal: true

Rails.application.routes.draw do
  root "home#show"

  resources :categories, only: :show
  resources :brands, only: %i[index show]
  resources :products, only: %i[index show] do
    resources :reviews, only: %i[index create]
    resources :questions, only: :create
  end
  resource :search, only: :show
  resource :cart, only: :show do
    resources :items, only: %i[create update destroy], controller: "cart_items"
    resource :coupon, only: %i[create destroy], controller: "cart_coupons"
  end
  resources :orders, only: %i[new create show], param: :token
  get "pages/:slug", to: "pages#show", as: :page
end
