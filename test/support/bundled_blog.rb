# frozen_string_literal: true

require "open3"
require_relative "highball_server"

# The blog with a Gemfile that has `gem "highball"` in the place of Puma, as applications have it. All gems but
# Highball are Debian's.
module BundledBlog
  GEMFILE = <<~RUBY.freeze
    source "https://rubygems.org"

    gem "rails"
    gem "sqlite3"
    gem "highball", path: "#{HighballServer::ROOT}"
  RUBY
  BOOT = <<~RUBY
    ENV["BUNDLE_GEMFILE"] ||= File.expand_path("../Gemfile", __dir__)
    require "bundler/setup"
  RUBY
  # What Bundler is not to look for elsewhere: the user's settings.
  ENVIRONMENT = { "BUNDLE_USER_CONFIG" => File::NULL, "BUNDLE_PATH" => nil }.freeze

  # The lock files of Gemfiles with these gems.
  def self.locks = @locks ||= {}

  # Its folder. `gems` are lines for the Gemfile.
  def bundled_blog(gems = "")
    blog = copy_of_example("blog")
    File.write(File.join(blog, "Gemfile"), GEMFILE + gems)
    File.write(File.join(blog, "config/boot.rb"), BOOT)
    application = File.join(blog, "config/application.rb")
    File.write(application, File.read(application).sub("\nmodule Blog", "\nBundler.require(*Rails.groups)\n\\0"))
    lock(blog, gems)
    blog
  end

  # Writes its lock file. Bundler makes each once for all tests of a file.
  def lock(blog, gems)
    path = File.join(blog, "Gemfile.lock")
    return File.write(path, BundledBlog.locks[gems]) if BundledBlog.locks.key?(gems)

    output, ended = run_in(blog, "bundle", "lock", "--local")
    assert_predicate ended, :success?, output
    BundledBlog.locks[gems] = File.read(path)
  end

  # Runs a command in the folder of the blog to its end: [what it printed, Process::Status].
  def run_in(blog, *command, env: {}, input: "")
    environment = HighballServer::ENVIRONMENT.merge(ENVIRONMENT, env)
    Open3.capture2e(environment, *command, chdir: blog, stdin_data: input)
  end

  # As a browser does that a developer has: Rails refuses other hosts in development.
  def browse(server, target = "/") = server.get(target, { "Host" => "127.0.0.1", "Accept" => "text/html" })

  # Starts `bin/rails server` and waits until it serves.
  def rails_server(blog, *arguments, env: {}, **settings)
    serve(blog, command: ["ruby", "bin/rails", "server", *arguments], env: ENVIRONMENT.merge(env), **settings)
  end
end
