# frozen_string_literal: true

require "open3"
require_relative "../support/pstore_test_case"

# What PStore does by Highball's extension: it must be what Ruby does. The other tests of PStore run with it here, and
# without it in `pstore_without_extension_test.rb`.
class PStoreExtensionTest < PStoreTestCase
  def setup
    super
    flunk "the extension is not built, or not loaded" unless Highball::PStore::EXTENSION
  end

  def test_a_lock_of_another_is_not_waited_for
    with_locked_file do |arguments, other|
      other.flock(File::LOCK_SH)
      refute Highball::Native.lock_same(*arguments)
      other.flock(File::LOCK_UN)
      assert Highball::Native.lock_same(*arguments)
      refute other.flock(File::LOCK_SH | File::LOCK_NB)
    end
  end

  def test_whether_the_file_is_as_it_was
    with_locked_file do |(file, path, identity, bytes), other|
      skip "this file system cannot tell" if Highball::Native.lock_same(file, path, identity, bytes).nil?
      refute Highball::Native.lock_same(file, path, identity, "bytez")
      refute Highball::Native.lock_same(file, path, identity, "byte")
      refute Highball::Native.lock_same(file, path, identity.reverse, bytes)
      refute Highball::Native.lock_same(file, "#{path}2", identity, bytes)
      other.chmod(0o600)
      refute Highball::Native.lock_same(file, path, identity, bytes)
    end
  end

  LOADED = <<~RUBY
    before = $LOADED_FEATURES.dup
    require "highball/pstore"
    puts $LOADED_FEATURES - before
  RUBY

  def test_what_is_loaded_with_pstore
    lib = File.expand_path("../../lib", __dir__)
    output, status = Open3.capture2e(RbConfig.ruby, "-I", lib, "-e", LOADED)
    assert_predicate status, :success?, output
    own = %r{\A#{lib}/highball/(?:pstore(?:/\w+)?\.rb|native\.rb|[\d.]+/highball_ext\.so)\z}
    assert_empty output.lines.map(&:chomp).grep_v(own).grep_v(/rbconfig\.rb\z/)
    assert_match(/highball_ext\.so$/, output)
  end

  private

  # The arguments of Native.lock_same for a file, and the same file opened again.
  def with_locked_file
    File.binwrite(@path, "bytes")
    File.open(@path, "r+b") do |file|
      stat = file.stat
      identity = [stat.dev, stat.ino, stat.mode, stat.uid].pack("Q*")
      File.open(@path) { |other| yield [file.fileno, @path, identity, "bytes"], other }
    end
  end
end
