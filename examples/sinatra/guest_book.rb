# frozen_string_literal: true

require "json"
require "sinatra/base"

# A guest book that keeps its newest entries in memory.
class GuestBook < Sinatra::Base
  NEWEST = 50
  LONGEST = 500 # characters

  set :root, __dir__
  set :entries, []
  set :entries_lock, Mutex.new

  helpers do
    def h(text) = Rack::Utils.escape_html(text)

    def entries
      settings.entries_lock.synchronize { settings.entries.dup }
    end

    def remember(text)
      settings.entries_lock.synchronize do
        settings.entries.unshift(text)
        settings.entries.pop if settings.entries.length > NEWEST
      end
    end
  end

  get "/" do
    erb :index
  end

  post "/entries" do
    text = params[:text].to_s.strip[0, LONGEST]
    halt 422, "An entry needs some text.\n" if text.empty?
    remember(text)
    redirect to("/"), 303
  end

  get "/entries.json" do
    content_type :json
    JSON.generate(entries)
  end
end
