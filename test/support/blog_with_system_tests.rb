# frozen_string_literal: true

require_relative "browser"
require_relative "bundled_blog"

# The blog with system tests, which a browser runs through Capybara: with records that are in the test's transaction
# only.
module BlogWithSystemTests
  include BundledBlog

  GEMS = %w[capybara selenium-webdriver].freeze

  # An exception is to reach Capybara.
  SHOW_EXCEPTIONS = "config.action_dispatch.show_exceptions = Rails::VERSION::STRING.to_f < 7.1 ? false : :none"

  HELPER = <<~RUBY.freeze
    ENV["RAILS_ENV"] = "test"
    require_relative "../config/environment"
    ActiveRecord::Tasks::DatabaseTasks.migrate
    require "rails/test_help"

    # The driver of the browser's own package; nothing is looked up elsewhere.
    Capybara.register_driver(:chromium) do |app|
      options = Selenium::WebDriver::Chrome::Options.new(args: %w[#{Browser::SWITCHES.join(' ')}])
      service = Selenium::WebDriver::Service.chrome(path: "/usr/bin/chromedriver")
      Capybara::Selenium::Driver.new(app, browser: :chrome, service: service, options: options)
    end

    class ApplicationSystemTestCase < ActionDispatch::SystemTestCase
      driven_by :chromium
    end
  RUBY

  POSTS = <<~RUBY
    require_relative "../test_helper"

    class PostsTest < ApplicationSystemTestCase
      test "a post that is in the transaction is on the page" do
        assert_same Capybara.servers[:highball], Capybara.server
        assert_equal 1, ActiveRecord::Base.connection.open_transactions
        Post.create!(title: "Night train", body: "It left on time.")
        visit "/"
        assert_text "Night train"
      end

      test "what a page writes is there for the test" do
        assert_equal 0, Post.count
        visit "/posts/new"
        fill_in "Title", with: "Day train"
        fill_in "Text", with: "So did it."
        click_on "Publish"
        assert_text "Published."
        assert_equal ["Day train"], Post.pluck(:title)
      end

      test "an exception of the application is one of the test" do
        assert_raises(ActiveRecord::RecordNotFound) do
          visit "/posts/0"
          visit "/"
        end
      end
    end
  RUBY

  def setup
    super
    skip "Capybara is not installed" unless GEMS.all? { |gem| Gem::Specification.stubs_for(gem).any? }
  end

  # Lines of a Gemfile.
  GEMFILE_GROUP = "group(:test) { #{GEMS.map { |gem| "gem '#{gem}'" }.join('; ')} }\n".freeze

  private

  def add_system_tests(blog)
    FileUtils.mkdir_p(File.join(blog, "test/system"))
    settings = File.join(blog, "config/environments/test.rb")
    File.write(settings, File.read(settings).sub(".configure do\n", "\\0  #{SHOW_EXCEPTIONS}\n"))
    File.write(File.join(blog, "public/favicon.ico"), "") # browsers always ask for it
    File.write(File.join(blog, "test/test_helper.rb"), HELPER)
    File.write(File.join(blog, "test/system/posts_test.rb"), POSTS)
    blog
  end

  # Runs them to their end: [what they printed, Process::Status].
  def run_system_tests(blog, **options) = run_in(blog, "ruby", "-W0", "-Itest", "test/system/posts_test.rb", **options)
end
