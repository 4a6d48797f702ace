# frozen_string_literal: true

require "minitest/autorun"
require "fileutils"
require "pathname"
require "tmpdir"
require "highball/load_path_index"

class LoadPathIndexTest < Minitest::Test
  def setup
    @folder = File.realpath(Dir.mktmpdir)
    @load_path = [place("a"), place("b")]
    %w[a/one.rb a/deep/two.rb b/deep/three.rb b/native.so a/twice.rb b/twice.rb a/mixed.rb b/mixed.so a/dir.rb/file.rb
       c/late.rb].each { |path| write(path) }
    @index = Highball::LoadPathIndex.new(@load_path)
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_features_of_one_file
    { "one" => "a/one.rb", "one.rb" => "a/one.rb", "deep/two" => "a/deep/two.rb", "deep/three" => "b/deep/three.rb",
      "native" => "b/native.so" }.each { |feature, path| assert_equal place(path), @index.find(feature), feature }
  end

  def test_features_that_are_left_to_ruby
    ["twice", "mixed", "missing", "deep/missing", "missing/one", "native.so", "./one", "../one", "~/one", "a/../one",
     "", "/", place("a/one"), "one/"].each { |feature| assert_nil @index.find(feature), feature.inspect }
    assert_equal place("a/mixed.rb"), @index.find("mixed.rb")
  end

  def test_a_load_path_that_changes
    assert_nil @index.find("late")
    @load_path.unshift(place("c"))
    assert_equal place("c/late.rb"), @index.find("late")
    write("c/one.rb")
    @load_path.delete(place("a"))
    assert_nil @index.find("one"), "a folder is read once"
    assert_equal place("b/twice.rb"), @index.find("twice")
  end

  def test_folders_have_their_real_path_and_count_once
    File.symlink(place("a"), place("link"))
    @load_path.unshift(place("link"), "#{place('a')}/", place("nowhere"), Pathname(place("c")))
    assert_equal place("a/one.rb"), @index.find("one")
    assert_equal place("c/late.rb"), @index.find("late")
  end

  def test_load_paths_that_ruby_expands_each_time
    [".", "lib", "~/lib", 7, nil].each do |strange|
      @load_path.push(strange)
      assert_nil @index.find("one"), strange.inspect
      assert @index.may_have?("missing"), strange.inspect
      @load_path.pop
      assert_equal place("a/one.rb"), @index.find("one")
    end
  end

  def test_what_may_be_there
    %w[one deep/two mixed twice native native.so ./x].each { |feature| assert @index.may_have?(feature), feature }
    %w[missing deep/missing].each { |feature| refute @index.may_have?(feature), feature }
  end

  # Whatever it answers is what Ruby would load.
  def test_it_agrees_with_ruby
    index = Highball::LoadPathIndex.new
    features = %w[set json optparse net/http date digest/sha2 rack minitest English socket ripper erb yaml nothing_such]
    answers = features.to_h { |feature| [feature, index.find(feature)] }
    assert_operator answers.values.compact.length, :>, 5, answers
    answers.compact.each do |feature, path|
      assert_equal [File.extname(path)[1..].to_sym, path], $LOAD_PATH.resolve_feature_path(feature), feature
    end
  end

  private

  def place(path) = File.join(@folder, path)

  def write(path)
    FileUtils.mkdir_p(File.dirname(place(path)))
    File.write(place(path), "")
  end
end
