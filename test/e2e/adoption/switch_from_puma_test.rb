# frozen_string_literal: true

# marks: long

require_relative "../../support/album_app"
require_relative "../../support/e2e_test"

# A Rails application on Puma, and the same one after the change that docs/migrating/puma.md shows: its tests and system
# tests pass on both. (That Highball serves it is in switched_app_test.rb.)
class SwitchFromPumaTest < E2ETest
  include AlbumApp

  # Writes the server of each request into the log.
  SERVER = "Rails.application.config.log_tags = [->(request) { request.get_header('SERVER_SOFTWARE') }]\n"

  def test_its_own_tests_pass_on_both
    # One after the other: drivers of browsers that look for a free port at the same moment may find the same one.
    assert_equal ["puma"], assert_own_tests_pass(album, {})
    assert_equal ["Highball"], assert_own_tests_pass(album_on_highball, gem_environment)
  end

  def test_the_lock_file_has_only_changed_its_server
    before, after = [album, album_on_highball].map { |app| locked_in(app) }
    assert_equal ["highball"], after - before
    assert_includes [%w[puma], %w[nio4r puma]], (before - after).sort
  end

  private

  def locked_in(app) = File.read(File.join(app, "Gemfile.lock")).scan(/^ {4}(\S+) \(/).flatten

  # The servers that have served its system tests.
  def assert_own_tests_pass(app, env)
    File.write(File.join(app, "config/initializers/log_tags.rb"), SERVER)
    output, ended = run_in(app, "ruby", "-W0", "bin/rails", "test:all", env: env)
    assert_predicate ended, :success?, output
    assert_match(/^11 runs, \d+ assertions, 0 failures, 0 errors, [01] skips/, output)
    File.read(File.join(app, "log/test.log")).scan(/^\[(\w+)[^\]\n]*\] Started/).flatten.uniq
  end
end
