# frozen_string_literal: true

require "logger"
require "securerandom"
require "rails"
require "action_controller/railtie"

# A Rails application in one file.
class OneFile < Rails::Application
  config.load_defaults Rails::VERSION::STRING.to_f
  config.eager_load = Rails.env.production?
  config.logger = Logger.new($stdout)
  config.secret_key_base = SecureRandom.hex(64) # sessions end with the server

  routes.append { root to: "greetings#show" }
end

class GreetingsController < ActionController::Base
  def show
    render inline: <<~ERB
      <!DOCTYPE html>
      <title>One file</title>
      <h1>Rails in a file</h1>
      <p>Rails <%= Rails.version %> says hello to <%= request.remote_ip %>.</p>
    ERB
  end
end
