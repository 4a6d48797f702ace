# frozen_string_literal: true

require_relative "../../../lib/highball/version"
require_relative "../../support/restart_test_case"

# The Gemfile of the application has another version of Highball than the server that runs: a later version, which
# has not taken over yet.
class VersionInGemfileTest < RestartTestCase
  GEMFILE = <<~RUBY
    gem "rack"
    gem "highball", path: "later"
  RUBY
  GEMSPEC = <<~RUBY
    Gem::Specification.new do |spec|
      spec.name = "highball"
      spec.version = "99.0"
      spec.summary = spec.author = "Highball"
    end
  RUBY
  APP = <<~RUBY
    require "bundler"
    Bundler.require
    require "highball/pstore"
    files = $LOADED_FEATURES.grep(%r{/later/lib/|/highball_ext\\.so\\z})
    run ->(_env) { [200, {}, [[Highball::VERSION, $hook, *files].join(" ")]] }
  RUBY

  def setup
    super
    @app = folder_with("Gemfile" => GEMFILE, "config.ru" => APP, "later/highball.gemspec" => GEMSPEC,
                       "config/highball.rb" => "Highball.after_fork { $hook = 'hook' }\n")
    FileUtils.cp_r(HighballServer::ENVIRONMENT.fetch("HIGHBALL_LIB"), File.join(@app, "later"))
    write("later/lib/highball/version.rb", "module Highball\n  VERSION = '99.0'\nend\n")
    write("later/lib/highball/later.rb", "require_relative 'native'\nHighball::Extension.load\n")
  end

  def test_the_running_version_is_the_only_one_that_is_loaded
    extension = File.join(HighballServer::ENVIRONMENT.fetch("HIGHBALL_LIB"), "highball",
                          RbConfig::CONFIG.fetch("ruby_version"), "highball_ext.so")
    assert_equal "#{Highball::VERSION} hook #{extension}", serve(@app).get("/").body
  end

  def test_an_application_that_needs_the_later_one_leaves_the_old_version_serving
    server = serve(@app)
    before = server.get("/").body
    write("config.ru", "require 'highball/later'\n#{APP}")
    output = restart_fails(server)
    assert_match(%r{cannot load such file -- highball/later}, output)
    assert_match(/bundle exec highball upgrade/, output + server.log)
    assert_equal before, server.get("/").body
  end

  private

  def write(name, text) = File.write(File.join(@app, name), text)
end
