# frozen_string_literal: true

require "fileutils"
require "minitest/autorun"
require "tmpdir"
require "highball/checkup"

class CheckupTest < Minitest::Test
  # As much of a Rails application as is asked.
  Application = Struct.new(:key) do
    def secret_key_base = key.respond_to?(:call) ? key.call : key
  end

  def setup
    @environment = ENV.fetch("RACK_ENV", nil)
    ENV["RACK_ENV"] = "production"
    @features = $LOADED_FEATURES.dup
  end

  def teardown
    ENV["RACK_ENV"] = @environment
    $LOADED_FEATURES.replace(@features)
    %w[web-console sidekiq solid_queue].each { |gem| Gem.loaded_specs.delete(gem) }
  end

  def test_a_key_that_is_missing_when_the_application_has_booted
    missing = -> { raise ArgumentError, "Missing `secret_key_base` for 'production' environment" }
    [nil, "", missing].each { |key| assert_equal [:missing_secret_key_base], with_rails(key) { causes } }
    assert_empty(with_rails("x" * 64) { causes })
    assert_empty(with_rails(-> { raise "the credentials cannot be read" }) { causes })
    ENV["RACK_ENV"] = "development"
    assert_empty(with_rails("") { causes })
  end

  # Bundler activates the gems of all groups.
  def test_gems_for_development_count_when_they_are_required
    Gem.loaded_specs["web-console"] = Gem::Specification.new("web-console")
    refute_includes causes(examine: "3"), :development_gems
    $LOADED_FEATURES << "#{Dir.pwd}/app/models/web_console.rb"
    refute_includes causes(examine: "3"), :development_gems
    %w[web_console web/console web-console].each do |file|
      $LOADED_FEATURES << "/gems/web-console-4.2.0/lib/#{file}.rb"
      assert_includes causes(examine: "3"), :development_gems
      $LOADED_FEATURES.pop
    end
  end

  # Never started unasked: others may run them.
  def test_job_runners_are_offered_in_production
    %w[sidekiq solid_queue].each { |gem| Gem.loaded_specs[gem] = Gem::Specification.new(gem) }
    Dir.mktmpdir do |root|
      offers = -> { Highball::Checkup.new(root: root).offers.map { |offer| offer[:command] } }
      assert_equal ['highball --with sidekiq="bundle exec sidekiq"'], offers.call
      FileUtils.mkdir_p("#{root}/bin")
      File.write("#{root}/bin/jobs", "")
      assert_equal ['highball --with jobs="bin/jobs"', 'highball --with sidekiq="bundle exec sidekiq"'], offers.call
      ENV["RACK_ENV"] = "development"
      assert_empty offers.call
    end
  end

  private

  def causes(**options)
    Highball::Checkup.new(**options).findings.map { |finding| finding[:cause] }
  end

  # (Minitest loads a part of Rails, where that is installed.)
  def with_rails(key)
    before = Object.send(:remove_const, :Rails) if Object.const_defined?(:Rails)
    Object.const_set(:Rails, Module.new { define_singleton_method(:application) { Application.new(key) } })
    yield
  ensure
    Object.send(:remove_const, :Rails)
    Object.const_set(:Rails, before) if before
  end
end
