# frozen_string_literal: true

require "minitest/autorun"
require "tmpdir"
require "highball/causes"

class CausesTest < Minitest::Test
  def test_a_missing_gem
    error = assert_raises(LoadError) { require "no_such_gem/at_all" }
    found = in_empty_folder { Highball::Causes.of(error) }
    assert_equal [:missing_gem, "gem install no_such_gem"], [found.name, found.command]
    found = in_empty_folder("Gemfile") { Highball::Causes.of(error) }
    assert_equal "bundle add no_such_gem", found.command
  end

  def test_a_file_of_ones_own_that_is_required_as_if_it_were_a_gem
    found = in_empty_folder("lib/mine.rb") do
      Highball::Causes.of(assert_raises(LoadError) { require "mine" })
    end
    assert_match(%r{lib/mine\.rb.*require_relative}, found.remedy)
    assert_nil found.command
  end

  def test_a_missing_file_of_ones_own
    found = in_empty_folder("settings.rb") do |folder|
      Highball::Causes.of(assert_raises(LoadError) { require "#{folder}/setings" })
    end
    assert_equal :missing_file, found.name
    assert_match(/setings does not exist.*Did you mean .*settings\.rb\?/, found.remedy)
    found = in_empty_folder("listings_of_all.rb", "scripts.rb") do |folder|
      Highball::Causes.of(assert_raises(LoadError) { require "#{folder}/setings" })
    end
    refute_match(/Did you mean/, found.remedy, "these are other words")
  end

  def test_an_extension_of_another_ruby
    message = "/x/gems/nokogiri-1.16.0/lib/nokogiri.so: undefined symbol: rb_gone"
    found = in_empty_folder { Highball::Causes.of(LoadError.new(message)) }
    assert_equal [:native_extension, "gem pristine nokogiri"], [found.name, found.command]
  end

  def test_the_cause_counts_where_the_error_itself_is_unknown
    error = assert_raises(RuntimeError) do
      File.read("/no/such/file")
    rescue SystemCallError
      raise "something went wrong"
    end
    assert_equal :missing_file, Highball::Causes.of(error).name
  end

  def test_messages_decide_where_classes_cannot
    {
      ArgumentError.new("Missing `secret_key_base`") => [:missing_secret_key_base, /SECRET_KEY_BASE=/],
      RuntimeError.new("missing run or map statement") => [:not_an_app, nil],
      RuntimeError.new("Cannot load database configuration") => [:database_config, /database\.yml/]
    }.each do |error, (name, command)|
      found = Highball::Causes.of(error)
      assert_equal name, found.name
      command ? assert_match(command, found.command) : assert_nil(found.command)
    end
  end

  def test_a_service_is_named_where_it_is_known
    assert_equal "sudo systemctl start postgresql",
                 Highball::Causes.of(Errno::ECONNREFUSED.new("connect(2) for localhost:5432")).command
    assert_nil Highball::Causes.of(Errno::ECONNREFUSED.new("connect(2) for localhost:1234")).command
  end

  def test_no_advice_is_better_than_a_wrong_one
    [RuntimeError.new("no idea"), ArgumentError.new("wrong number of arguments")].each do |error|
      assert_equal Highball::Causes::UNKNOWN, Highball::Causes.of(error)
    end
  end

  def test_every_row_gives_advice
    Highball::Causes::TABLE.each do |row|
      assert(row.remedy.respond_to?(:call) || row.remedy.match?(/\w+ .*\w/), row.inspect)
      assert(row.classes.any? || row.pattern, row.inspect)
      assert_match(/\A[a-z_]+\z/, row.name, row.inspect)
    end
  end

  private

  def in_empty_folder(*files)
    Dir.mktmpdir do |folder|
      files.each do |file|
        FileUtils.mkdir_p(File.join(folder, File.dirname(file)))
        FileUtils.touch(File.join(folder, file))
      end
      Dir.chdir(folder) { yield folder }
    end
  end
end
