# frozen_string_literal: true

require_relative "highball_server"

# The examples: the framework that is detected in each, and the text of its page.
module Examples
  ALL = {
    "blog" => [/app="Rails [\d.]+ in development"/, "Blog"],
    "shop" => [/app="Rails [\d.]+ in development"/, "Model railways, delivered"],
    "rails-file" => [/app="Rails [\d.]+ in development"/, "Rails in a file"],
    "sinatra" => [/app="Sinatra [\d.]+ \(modular\) in development"/, "Guest book"],
    "sinatra-file" => [/app="Sinatra [\d.]+ \(modular\) in development"/, "Modular Sinatra"],
    "sinatra-classic" => [/app="Sinatra [\d.]+ \(classic\) in development"/, "Classic Sinatra"],
    "grape" => [/app="Grape [\d.]+ in development"/, "brocken"],
    "camping" => [/app="Camping [\d.]+ in development"/, "room for 7 more tents"],
    "rack" => [/app="Rack [\d.]+ in development" because="there is config.ru"/, "Hello World"],
    "rack-file" => [/app="Rack [\d.]+ in development" because="app.rb says /, "Rack in a file: GET /"],
    "streaming" => [/app="Rack [\d.]+ in development"/, "clock"],
    "live-messages" => [/app="Rack [\d.]+ in development"/, "Live messages"],
    "chat-model" => [/app="Rack [\d.]+ in development"/, "Chat with a slow model"],
    "static" => [/app="static site"/, "A static site"],
    "jekyll" => [/app="Jekyll site" because="there are _config.yml and _site/, "written in Markdown"],
    "dist" => [/app="static site" because="there is dist/, "A site that was built"],
    "public" => [/app="static site" because="there is public/, "Pages in public"]
  }.freeze

  # The packages that an example needs and this Debian has not installed: not every Debian has every framework.
  def self.missing_packages(name)
    packages = File.readlines(File.join(HighballServer::EXAMPLES, name, "debian-packages"), chomp: true)
    packages.reject { |package| system("dpkg-query", "--status", package, %i[out err] => File::NULL) }
  end
end
