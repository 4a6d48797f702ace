# frozen_string_literal: true

require_relative "../../support/blog_with_system_tests"
require_relative "../../support/e2e_test"

# An application's own system tests, through Capybara on Highball: with records that are in the test's transaction only,
# as with Puma.
class SystemTestsTest < E2ETest
  include BlogWithSystemTests

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

  def blog_with_tests(gems = "") = add_system_tests(bundled_blog("#{gems}#{GEMFILE_GROUP}"))
end
