# frozen_string_literal: true

require "minitest/autorun"
require "fileutils"
require "tmpdir"
require "rack"
require "highball/app"

class AppTest < Minitest::Test
  App = Highball::App
  CALLABLE = ->(_env) { [200, {}, []] }

  def setup
    @folder = File.realpath(Dir.mktmpdir)
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_config_ru_is_loaded_whatever_rack_returns
    write "config.ru", "run ->(_env) { [204, {}, []] }\n"
    assert_equal 204, App.load(@folder).rack_app.call({}).first
  end

  def test_a_folder_without_an_application
    error = assert_raises(App::NotFound) { App.load(@folder) }
    assert_includes error.message, @folder
  end

  def test_what_cannot_be_called_is_no_application
    assert_raises(App::NotAnApp) { App.new(42, @folder) }
  end

  def test_a_plain_application_describes_itself
    description = App.new(CALLABLE, @folder).description
    assert_includes [%i[name], %i[off], %i[off is_missing]], description[:jit].keys
    assert_equal ["Rack", Rack.release, nil, {}], description.values_at(:framework, :rack, :public, :public_headers)
  end

  def test_the_public_folder_is_told_by_its_real_path
    FileUtils.mkdir(File.join(@folder, "current"))
    File.symlink("current", File.join(@folder, "public"))
    assert_equal File.join(@folder, "current"), App.new(CALLABLE, @folder).public_folder
  end

  def test_the_framework_that_is_loaded_gives_the_name
    in_another_ruby(<<~RUBY, "Sinatra 9.9")
      module Sinatra; VERSION = "9.9"; end
      print Highball::App.new(->(env) {}, "/").framework
    RUBY
  end

  def test_rails_names_its_public_folder_and_headers
    in_another_ruby(<<~RUBY, "Rails 6.1.0 Cache-Control=public")
      require "ostruct"
      module Rails
        module VERSION; STRING = "6.1.0"; end
        def self.application = OpenStruct.new(config: OpenStruct.new(public_file_server:
          OpenStruct.new(headers: { "Cache-Control" => "public" })))
      end
      app = Highball::App.new(->(env) {}, "/")
      print app.framework, " ", app.public_headers.map { |pair| pair.join("=") }.join
    RUBY
  end

  private

  def write(name, content)
    File.write(File.join(@folder, name), content)
  end

  # Other tests must not see the fake frameworks.
  def in_another_ruby(code, expected)
    lib = File.expand_path("../../lib", __dir__)
    output = IO.popen([RbConfig.ruby, "-I#{lib}", "-rhighball/app", "-e", code], err: %i[child out], &:read)
    assert_equal expected, output
  end
end
