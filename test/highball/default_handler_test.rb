# frozen_string_literal: true

require "minitest/autorun"
require "open3"
require "rbconfig"

# Which server Rack starts by default in a process that has loaded Highball. Each test has a separate process.
class DefaultHandlerTest < Minitest::Test
  LIB = File.expand_path("../../lib", __dir__)
  # Rack 2 or Rackup, whichever there is, as `rails server` and `rackup` load them.
  SERVERS = <<~RUBY
    begin
      require "rackup"
      require "rackup/server"
      HANDLERS = Rackup::Handler
    rescue LoadError
      require "rack"
      Rack::Server
      HANDLERS = Rack::Handler
    end
  RUBY

  def test_highball_is_the_default_where_it_is_loaded
    assert_equal "Highball", run_ruby(SERVERS, 'require "highball"', "puts HANDLERS.default.name.split('::').last")
  end

  def test_a_server_of_the_bundle_stays_the_default
    %w[puma thin falcon].each do |gem|
      bundled = "Gem.loaded_specs['#{gem}'] = Gem::Specification.new('#{gem}')"
      before = run_ruby(SERVERS, bundled, "p((HANDLERS.default rescue $!.message))")
      assert_equal before, run_ruby(SERVERS, bundled, 'require "highball"', "p((HANDLERS.default rescue $!.message))")
    end
  end

  def test_a_server_that_is_named_goes_before
    named = %w[RACK_HANDLER RACKUP_HANDLER].map { |name| "ENV['#{name}'] = 'highball'" }.join(";")
    bundled = "Gem.loaded_specs['puma'] = Gem::Specification.new('puma')"
    assert_equal "Highball",
                 run_ruby(SERVERS, bundled, 'require "highball"', named, "puts HANDLERS.default.name.split('::').last")
    other = "module Own; end; HANDLERS.register('own', Own) rescue HANDLERS.register('own', 'Own')"
    named = %w[RACK_HANDLER RACKUP_HANDLER].map { |name| "ENV['#{name}'] = 'own'" }.join(";")
    assert_equal "Own", run_ruby(SERVERS, other, 'require "highball"', named, "puts HANDLERS.default.name")
  end

  def test_nothing_is_loaded_that_is_not_needed
    loaded = "puts $LOADED_FEATURES.grep(%r{/(rack|socket|uri|highball/(handler|binary|native))}).grep_v(/rackup/)"
    assert_empty run_ruby('require "highball"', loaded)
    # Rack itself is loaded by the console and by Rake, too, and its servers are not.
    kept = "puts [Rack.autoload?(:Handler), defined?(Rack::Handler), defined?(Rackup)].inspect"
    assert_equal run_ruby('require "rack"', kept), run_ruby('require "rack"', 'require "highball"', kept)
  end

  def test_the_handler_is_called_like_the_server
    name = "puts HANDLERS.get('highball').to_s.split('::').last"
    assert_equal "Highball", run_ruby(SERVERS, name)
    assert_equal "true", run_ruby(SERVERS, 'p HANDLERS.get("highball").respond_to?(:run)')
  end

  private

  def run_ruby(*lines)
    output, ended = Open3.capture2e(RbConfig.ruby, "-I", LIB, "-W0", "-e", lines.join("\n"))
    assert_predicate ended, :success?, output
    output.strip
  end
end
