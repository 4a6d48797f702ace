# frozen_string_literal: true

require "sinatra/base"

# What time it is.
class Clock < Sinatra::Base
  get "/" do
    content_type :html
    "<!DOCTYPE html><title>Clock</title><h1>Modular Sinatra</h1><p>It is #{Time.now.strftime('%T')}.</p>\n"
  end

  # For `ruby clock.rb`; Highball serves the class.
  run! if app_file == $PROGRAM_NAME
end
