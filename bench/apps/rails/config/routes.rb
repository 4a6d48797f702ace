# frozen_string_literal: true

require_relative "../../heap"

Rails.application.routes.draw do
  root "clocks#show"
  resources :stations, only: :show
  resource :visits, only: :show
  get HEAP_PATH, to: HEAP
end
