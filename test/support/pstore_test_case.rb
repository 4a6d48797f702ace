# frozen_string_literal: true

require "minitest/autorun"
require "pstore"
require "timeout"
require "tmpdir"
require "highball/pstore"

# Tests look at tables that are divided into roots as soon as possible.
Highball::PStore.__send__(:remove_const, :UNCHANGED_BEFORE_DIVIDED)
Highball::PStore::UNCHANGED_BEFORE_DIVIDED = 1
Highball::PStore.__send__(:remove_const, :SMALL_BYTES)
Highball::PStore::SMALL_BYTES = 0

# A test with a store in a temporary folder.
class PStoreTestCase < Minitest::Test
  def setup
    @folder = Dir.mktmpdir("highball-pstore")
    @path = File.join(@folder, "store")
    @store = Highball::PStore.new(@path)
  end

  def teardown
    FileUtils.chmod(0o700, @folder)
    FileUtils.rm_rf(@folder)
  end

  private

  def content(store = @store)
    store.transaction(true) { store.keys.to_h { |name| [name, store[name]] } }
  end

  def in_file = Marshal.load(File.binread(@path)) # rubocop:disable Security/MarshalLoad

  # Makes the file so old that it counts as unchanged when it has been read.
  def settle
    old = Time.now - 60
    File.utime(old, old, @path)
  end

  def wait_for_sleep(thread)
    Timeout.timeout(5) { Thread.pass until thread.stop? }
  end
end
