# frozen_string_literal: true

Rails.application.routes.draw do
  # Reveal health status on /up that returns 200 if the app boots with no exceptions, otherwise 500.
  get "up" => "rails/health#show", as: :rails_health_check if defined?(Rails::HealthController)

  root "photos#index"
  resources :photos, only: %i[index show new create] do
    resources :comments, only: :create
  end
  get "news" => "news#show"
  get "news/events" => "news#events"
end
