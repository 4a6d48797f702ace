# frozen_string_literal: true

require "minitest/autorun"
require "fileutils"
require "tmpdir"
require "highball/detection"
require "highball/rails_files"
require "highball/ruby_version"

# Detection of folders by their files, for which the frameworks need not be installed.
class DetectionTest < Minitest::Test
  CALL = "class App\n  def call(env) = [200, {}, []]\nend\n"
  # Files, and the framework and evidence that they lead to.
  FOLDERS = {
    { "config.ru" => "run ->(env) {}" } => ["Rack", "there is config.ru"],
    { "app.rb" => CALL } => ["Rack", "app.rb says `def call(env)"],
    { "only.rb" => "App = ->(env) { [200, {}, []] }" } => ["Rack", "only.rb says"],
    { "config/environment.rb" => "Rails.application.initialize!", "config.ru" => "run Rails.application" } =>
      ["Rails", "config/environment.rb belongs to a Rails application"],
    { "app.rb" => "class A < Rails::Application; end" } => ["Rails", "app.rb says"],
    { "app.rb" => "require 'sinatra'\nget('/') { 'hi' }" } => ["Sinatra", "app.rb says `require 'sinatra'`"],
    { "app.rb" => "require 'sinatra/base'\nclass A < Sinatra::Base\nend" } => ["Sinatra", "app.rb says"],
    { "config.ru" => "require_relative 'book'", "book.rb" => "require \"sinatra/base\"" } =>
      ["Sinatra", "book.rb says"],
    { "config.ru" => "run App", "Gemfile" => "gem 'sinatra', '~> 4'" } =>
      ["Sinatra", "there is config.ru, and Gemfile names sinatra"],
    { "nuts.rb" => "require 'camping'\nCamping.goes :Nuts" } => ["Camping", "nuts.rb says `Camping.goes :Nuts`"],
    { "config.ru" => "require_relative './api'\nrun API", "api.rb" => "class API < Grape::API" } =>
      ["Grape", "api.rb says"],
    { "app.rb" => "class App < Roda\n route { }\nend" } => ["Roda", "app.rb says `class App < Roda`"],
    { "config.ru" => "require 'hanami/boot'\nrun Hanami.app" } => ["Hanami", "config.ru says"],
    { "config/app.rb" => "module Shop\n class App < Hanami::App\n end\nend" } => ["Hanami", "config/app.rb belongs to"],
    { "config/apps.rb" => "Padrino.mount('Shop').to('/')" } => ["Padrino", "config/apps.rb belongs to"],
    { "config.ru" => "run A", "script.rb" => "require 'sinatra'" } => ["Rack", "there is config.ru"],
    # A framework in a comment, or in the Gemfile of another framework's application, does not count.
    { "config.ru" => "# require 'sinatra'\nrun A" } => ["Rack", "there is config.ru"],
    { "config/environment.rb" => "Rails.application.initialize!", "config.ru" => "run Rails.application",
      "Gemfile" => "gem 'rails'\ngem 'sinatra'\ngem 'grape'" } => ["Rails", "config/environment.rb belongs to"]
  }.freeze

  def setup
    @folder = File.realpath(Dir.mktmpdir)
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_every_kind_of_folder
    FOLDERS.each do |files, (framework, because)|
      found = Highball::Detection.of(folder(files))
      assert_equal framework, found&.class&.framework, files
      assert_includes found.evidence.words, because
    end
  end

  def test_a_folder_of_something_else_is_none
    [{}, { "README" => "" }, { "a.rb" => CALL, "b.rb" => CALL }, { "tool.rb" => "puts 1" }].each do |files|
      assert_nil Highball::Detection.of(folder(files)), files
    end
  end

  def test_a_file_that_was_named_goes_before_all
    files = { "config.ru" => "run A", "my.ru" => "run B", "one.rb" => "require 'sinatra'" }
    assert_equal "there is my.ru", Highball::Detection.of(folder(files, "my.ru")).evidence.words
    assert_equal "Sinatra", Highball::Detection.of(folder(files, "one.rb")).class.framework
    found = Highball::Detection.of(folder({ "two.rb" => "Two = Made.up" }, "two.rb"))
    assert_equal "two.rb was named", found.evidence.words
  end

  def test_the_version_is_that_of_the_lock_file
    found = Highball::Detection.of(folder("config.ru" => "run A", "Gemfile" => "gem 'grape'",
                                          "Gemfile.lock" => "GEM\n  specs:\n    grape (9.8.7)\n      rack (>= 3)\n"))
    assert_equal "Grape 9.8.7", found.name
  end

  def test_files_that_cannot_be_read_as_text_do_no_harm
    assert_equal "Rack", Highball::Detection.of(folder("config.ru" => "\xFF\xFE\x00".b)).class.framework
  end

  # The supervisor recognises static sites before it starts Ruby, so it has to know all layouts.
  def test_no_layout_is_taken_for_a_static_site
    site = File.read(File.expand_path("../../crates/supervisor/src/process/site.rs", __dir__))
    layouts = Highball::Detector.all.filter_map { |detector| detector::LAYOUT&.first }
    refute_empty layouts
    layouts.each { |file| assert_includes site, file.inspect }
  end

  # --- versions of Ruby

  def test_versions_of_ruby
    { ".ruby-version" => ["3.1.2", "ruby-3.1.2\n", "3.1", "3", "3.1.2-preview1", "system", "jruby-9.4.0"],
      ".tool-versions" => ["nodejs 20.1.0\nruby 3.1.2\n", "nodejs 20.1.0\n"] }.each do |file, texts|
      texts.each { |text| assert_nil mismatch(file => text), text }
    end
    { ".ruby-version" => ["3.1.20", "3.3", "ruby-2.7.8"], ".tool-versions" => ["ruby 3.4.1"] }.each do |file, texts|
      expected = /#{file} asks for Ruby [\d.]+, and this is Ruby 3\.1\.2/
      texts.each { |text| assert_match expected, mismatch(file => text).warning }
    end
  end

  # --- Rails

  def test_a_complete_rails_application_has_no_warnings
    complete = { "config/database.yml" => "", "config/credentials.yml.enc" => "", "config/master.key" => "" }
    assert_empty warnings(complete)
    assert_empty warnings({ "config/database.yml" => "" }) # where its key comes from is seen when it has booted
  end

  def test_keys_of_rails
    locked = { "config/database.yml" => "", "config/credentials/production.yml.enc" => "" }
    assert_match(%r{neither config/credentials/production\.key nor RAILS_MASTER_KEY}, warnings(locked).join)
    assert_empty warnings(locked, { "RAILS_MASTER_KEY" => "x" })
  end

  def test_the_database_of_rails
    key = { "SECRET_KEY_BASE" => "x" }
    assert_equal ["there is neither config/database.yml nor DATABASE_URL"], warnings({}, key)
    assert_empty warnings({}, key.merge("DATABASE_URL" => "postgres://u:secret@h/d"))
    lock = { "Gemfile.lock" => "    mysql2 (0.5.6)\n" }
    assert_empty warnings(lock, key.merge("DATABASE_URL" => "mysql2://u:secret@h/d"))
    assert_equal ["DATABASE_URL is for postgres, and Gemfile.lock has no pg"],
                 warnings(lock, key.merge("DATABASE_URL" => "postgres://u:secret@h/d"))
  end

  private

  def folder(files, named = nil)
    FileUtils.rm_rf(Dir.children(@folder).map { |name| File.join(@folder, name) })
    files.each do |name, text|
      path = File.join(@folder, name)
      FileUtils.mkdir_p(File.dirname(path))
      File.binwrite(path, text)
    end
    Highball::AppFolder.new(@folder, named)
  end

  def mismatch(files) = Highball::RubyVersion.mismatch(folder(files), running: "3.1.2")

  def warnings(files, variables = {})
    files = { "config/application.rb" => "require \"rails/all\"\n" }.merge(files)
    Highball::RailsFiles.new(folder(files), "production", variables).warnings.map(&:warning)
  end
end
