# frozen_string_literal: true

# marks: debian13

require_relative "../../support/browser"
require_relative "../../support/bundled_blog"
require_relative "../../support/e2e_test"

# An application's own system tests, through Capybara on Highball: with records that are in the test's transaction only,
# as with Puma.
class SystemTestsTest < E2ETest
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

  def test_rails_system_tests_run_on_highball
    blog = blog_with_tests
    output, ended = run_system_tests(blog)
    assert_predicate ended, :success?, output
    assert_match(/^3 runs, \d+ assertions, 0 failures, 0 errors/, output)
    refute_match(/Puma|INFO|WARN/, output) # nothing but the exception is printed
  end

  # Where Puma is in the bundle it is what Rails takes, unless Highball is named.
  def test_highball_beside_puma
    skip "Puma is not installed" if Gem::Specification.stubs_for("puma").empty?
    blog = blog_with_tests("gem \"puma\"\n")
    output, ended = run_system_tests(blog)
    refute_predicate ended, :success?, output
    assert_match(/Capybara starting Puma/, output)
    helper = File.join(blog, "test/test_helper.rb")
    File.write(helper, File.read(helper).sub("  driven_by", "  Capybara.server = :highball\n\\0"))
    output, ended = run_system_tests(blog)
    assert_predicate ended, :success?, output
  end

  # Without Rails: `require "highball/capybara"`.
  def test_a_rack_application
    script = <<~RUBY
      require "capybara/dsl"
      require "highball/capybara"
      require "net/http"
      extend Capybara::DSL
      Capybara.server = :highball, { threads: 2 }
      Capybara.app = ->(env) { [200, { "content-type" => "text/plain" }, [env["SERVER_SOFTWARE"], Process.pid.to_s]] }
      server = Capybara::Server.new(Capybara.app).boot
      puts Net::HTTP.get(URI(server.base_url)) == "Highball/\#{Highball::VERSION}\#{Process.pid}"
    RUBY
    output, ended = Open3.capture2e(HighballServer::ENVIRONMENT, "ruby", "-W0", "-I",
                                    File.join(HighballServer::ROOT, "lib"), "-e", script)
    assert_predicate ended, :success?, output
    assert_equal "true\n", output
  end

  private

  def blog_with_tests(gems = "")
    blog = bundled_blog("#{gems}group(:test) { #{GEMS.map { |gem| "gem '#{gem}'" }.join('; ')} }\n")
    FileUtils.mkdir_p(File.join(blog, "test/system"))
    settings = File.join(blog, "config/environments/test.rb")
    File.write(settings, File.read(settings).sub(".configure do\n", "\\0  #{SHOW_EXCEPTIONS}\n"))
    File.write(File.join(blog, "public/favicon.ico"), "") # browsers always ask for it
    File.write(File.join(blog, "test/test_helper.rb"), HELPER)
    File.write(File.join(blog, "test/system/posts_test.rb"), POSTS)
    blog
  end

  def run_system_tests(blog) = run_in(blog, "ruby", "-W0", "-Itest", "test/system/posts_test.rb")
end
