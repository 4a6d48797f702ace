# frozen_string_literal: true

require "fileutils"
require "minitest/autorun"
require "open3"
require "rbconfig"
require "tmpdir"

# The tests of PStore pass also where Highball's extension is not built for the running Ruby.
class PStoreWithoutExtensionTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  ALONE = %w[pstore_extension_test.rb pstore_without_extension_test.rb pstore_documentation_test.rb].freeze

  def setup
    @folder = Dir.mktmpdir("highball-no-extension")
    %w[lib/highball test/highball].each { |folder| FileUtils.mkdir_p(File.join(@folder, folder)) }
    parts = Dir.glob(File.join(ROOT, "lib/highball/*")).reject { |path| Dir.glob("#{path}/*.so").any? }
    FileUtils.cp_r(parts, File.join(@folder, "lib/highball"))
    FileUtils.cp_r(File.join(ROOT, "test/support"), File.join(@folder, "test"))
    FileUtils.cp(files, File.join(@folder, "test/highball"))
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_there_is_none
    output, = ruby("-r", "highball/pstore", "-e", "print [Highball::PStore::EXTENSION, defined?(Highball::Native)]")
    assert_equal "[false, nil]", output
  end

  def test_the_tests_pass
    names = files.map { |path| File.basename(path) }
    assert_operator names.length, :>=, 8
    names.each do |name|
      output, status = ruby("-Itest", "test/highball/#{name}")
      assert_predicate status, :success?, "#{name}: #{output}"
      assert_match(/ 0 failures, 0 errors/, output)
    end
  end

  private

  def files
    Dir.glob(File.join(ROOT, "test/highball/pstore*_test.rb")).reject { |path| ALONE.include?(File.basename(path)) }
  end

  def ruby(*arguments)
    Open3.capture2e(RbConfig.ruby, "-w", "-Ilib", *arguments, chdir: @folder)
  end
end
