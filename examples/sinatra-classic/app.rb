# frozen_string_literal: true

require "sinatra"

# Which way the wind blows, so far.
WINDS = %w[north east south west].freeze

get "/" do
  @wind = WINDS.sample
  erb :index
end

get "/winds/:name" do |name|
  halt 404, "There is no such wind.\n" unless WINDS.include?(name)
  "The #{name} wind blows.\n"
end

__END__

@@ index
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>Wind</title>
<h1>Classic Sinatra</h1>
<p>The wind blows from the <a href="/winds/<%= @wind %>"><%= @wind %></a>.</p>
