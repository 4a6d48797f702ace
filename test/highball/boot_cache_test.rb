# frozen_string_literal: true

require "minitest/autorun"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
require "highball/boot_cache"
require "highball/boot_cache/writer"
require_relative "../support/deadline"
require_relative "../support/process_facts"

# Files are loaded in other processes: each has a boot.
class BootCacheTest < Minitest::Test
  LIB = File.expand_path("../../lib", __dir__)
  # Loads the files, and writes what the cache lacks.
  BOOT = <<~RUBY
    require "highball/boot_cache"
    Highball::BootCache.take_decision
    Highball::BootCache.during { ARGV.each { |file| require file } }
    print [VALUE, Highball::BootCache.description.values.last].inspect
    Highball::BootCache.write
    print "\n"
    $stdout.flush
    sleep
  RUBY

  def setup
    @place = File.realpath(Dir.mktmpdir)
    @cache = File.join(@place, "cache")
    @file = write("value.rb", "VALUE = 1\n")
  end

  def teardown
    FileUtils.rm_rf(@place)
  end

  def test_the_second_boot_has_what_the_first_has_loaded
    other = write("other.rb", "OTHER = __FILE__\n")
    assert_equal [1, "0 of 2 files"], boot(@file, other)
    assert_equal [1, "2 of 2 files"], boot(@file, other)
    assert_equal [0o600], cached.map { |path| File.stat(path).mode & 0o777 }.uniq
    assert_empty Dir.glob(File.join(@cache, "highball/boot/list*"))
  end

  # As archives and images with fixed times do.
  def test_a_changed_file_of_the_same_size_and_time
    boot(@file)
    time = File.mtime(@file)
    File.write(@file, "VALUE = 2\n")
    File.utime(time, time, @file)
    assert_equal [2, "0 of 1 files"], boot(@file)
    assert_equal [2, "1 of 1 files"], boot(@file)
    changed = write("new.rb", "VALUE = 3\n")
    File.utime(time, time, changed)
    File.rename(changed, @file)
    assert_equal [3, "0 of 1 files"], boot(@file)
  end

  def test_damaged_files_are_compiled_again
    boot(@file)
    whole = File.binread(cached[0])
    damaged = [0, 1, 63, 64, 65, whole.bytesize - 1].map { |length| whole[0, length] }
    damaged += ["#{whole}x", "\0" * whole.bytesize, whole[0, 100].ljust(whole.bytesize, "\0"), Random.bytes(200)]
    damaged += Array.new(8) { |index| whole.dup.tap { |bytes| bytes.setbyte((index * 37) % bytes.bytesize, 0xa5) } }
    (damaged - [whole]).each do |bytes|
      File.binwrite(cached[0], bytes)
      assert_equal [1, "0 of 1 files"], boot(@file)
    end
  end

  # A number of another Ruby stands in the sequence itself, behind a header that is right.
  def test_sequences_of_another_ruby
    boot(@file)
    bytes = File.binread(cached[0]).byteslice(Highball::BootCache::CompiledFile::HEADER_BYTES..)
    bytes.setbyte(4, 99) # the major version
    identity = Highball::BootCache::CompiledFile.identity(File.stat(@file))
    File.binwrite(cached[0], Highball::BootCache::CompiledFile.encode(identity, bytes))
    assert_equal [1, "0 of 1 files"], boot(@file)
  end

  def test_folders_that_others_could_change
    { "a folder that others can write to" => -> { File.chmod(0o777, @place) },
      "a link to one" => -> { link_to_open_folder },
      "no folder" => -> { File.write(@cache, "") } }.each do |what, arrange|
      teardown && setup
      arrange.call
      value, why = boot(@file)
      assert_equal 1, value
      assert_match(/others can write|Not a directory|File exists/, why, what)
    end
  end

  def test_a_folder_of_another_user
    skip "needs root" unless Process.uid.zero?
    boot(@file)
    FileUtils.chown(65_534, nil, File.join(@cache, "highball/boot"))
    assert_equal [1, "#{@cache}/highball/boot belongs to another user"], boot(@file)
    FileUtils.rm_rf(@cache)
    Dir.mkdir(@cache)
    FileUtils.chown(65_534, nil, @cache)
    assert_equal [1, "#{@cache} belongs to another user"], boot(@file)
    assert_empty Dir.children(@cache)
  end

  def test_without_a_folder
    assert_match(/names a folder/, boot(@file, env: { "XDG_CACHE_HOME" => nil, "HOME" => nil })[1])
    assert_match(/names a folder/, boot(@file, env: { "XDG_CACHE_HOME" => "cache", "HOME" => nil })[1])
    home = File.join(@place, "home")
    why = boot(@file, env: { "XDG_CACHE_HOME" => nil, "HOME" => home })[1]
    assert_equal "the home folder #{home} does not exist", why
    refute_path_exists home
  end

  def test_it_is_off_where_highball_has_decided_so
    assert_equal [1, "boot_cache = off"], boot(@file, env: { "HIGHBALL_COMPILED_FILES" => "boot_cache = off" })
    refute_path_exists @cache
  end

  # Bootsnap, as it is loaded before the cache, and after.
  def test_another_cache_goes_before
    library = "class << RubyVM::InstructionSequence; prepend(Module.new { def load_iseq(path) = nil }); end\n"
    assert_match(/another library/, boot(@file, before: library)[1])
    first = write("library.rb", library)
    assert_equal [1, "0 of 1 files"], boot(first, @file)
    assert_equal [1, "1 of 1 files"], boot(first, @file)
  end

  def test_coverage_and_other_options_of_the_compiler
    boot(@file)
    assert_match(/coverage/, boot(@file, before: "require 'coverage'; Coverage.start\n")[1])
    frozen = "RubyVM::InstructionSequence.compile_option = { frozen_string_literal: true }\n"
    text = write("text.rb", "VALUE = 'text'.frozen?\n")
    assert_equal false, boot(text)[0]
    strict = write("strict.rb", frozen)
    assert_equal true, boot(strict, text)[0]
    assert_equal true, boot(strict, text)[0]
  end

  # The part of the cache and such a path could name a file of the application together.
  def test_paths_that_lead_elsewhere
    around = "#{@place}/../#{File.basename(@place)}/value.rb"
    loads = write("loads.rb", "load(#{around.dump})\nload(#{@file.dump})\n")
    2.times { boot(loads) }
    assert_equal "VALUE = 1\n", File.read(@file)
    folder = File.join(@cache, "highball/boot", Highball::BootCache.part)
    assert_equal [@file, loads].map { |file| folder + file }.sort, cached.sort
    up = "/.." * folder.count("/")
    Highball::BootCache::Writer.new(folder, Process.pid).write([up + @file])
    assert_equal "VALUE = 1\n", File.read(@file)
  end

  def test_warnings_are_not_repeated
    twice = write("twice.rb", "VALUES = { a: 1, a: 2 }\n")
    boot(@file, twice)
    assert_equal 1, File.read(errors_path).scan("duplicated").length
  end

  def test_files_that_cannot_be_compiled_are_rubys_matter
    broken = write("broken.rb", "def (\n")
    2.times { assert_match(/syntax error|SyntaxError|expected/i, failing_boot(broken)) }
  end

  def test_the_writer_ends_with_the_server
    ended = Process.spawn("true")
    Process.wait(ended)
    Highball::BootCache::Writer.new(@cache, ended).write([@file])
    assert_empty cached
  end

  def test_the_cache_has_a_limit
    files = Array.new(4) { |index| write("f#{index}.rb", "#{index}\n" * 200) }
    folder = File.join(@cache, "highball/boot", Highball::BootCache.part)
    add = ->(paths, most) { Highball::BootCache::Writer.new(folder, Process.pid, most_bytes: most).write(paths) }
    FileUtils.mkdir_p(File.join(@cache, "highball/boot/another-ruby"))
    add.call(files, 1 << 20)
    files.each_with_index { |file, index| File.utime(index, index, folder + file) }
    size = File.size(folder + files[0])
    add.call([], size * 3)
    refute_path_exists File.join(@cache, "highball/boot/another-ruby")
    assert_equal files.last(1).map { |file| folder + file }, cached
  end

  def test_a_full_disk
    skip "needs root" unless Process.uid.zero?
    Dir.mkdir(@cache)
    assert system("mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "none", @cache)
    many = Array.new(20) { |index| write("many#{index}.rb", "MANY#{index} = [#{'[1], ' * 300}]\n") }
    assert_equal 1, boot(@file, *many)[0]
    assert_match(/cannot be written: No space left/, File.read(errors_path))
    assert_equal 1, boot(@file, *many)[0]
  ensure
    system("umount", @cache) if Process.uid.zero?
  end

  private

  def write(name, content) = File.join(@place, name).tap { |path| File.write(path, content) }

  def cached = Dir.glob(File.join(@cache, "highball/boot/*/**/*")).select { |path| File.file?(path) }

  def link_to_open_folder
    open = File.join(@place, "open").tap { |path| Dir.mkdir(path) }
    File.chmod(0o777, open)
    File.symlink(open, @cache)
  end

  def errors_path = File.join(@place, "errors")

  def environment(more)
    { "XDG_CACHE_HOME" => @cache, "CACHE_DIRECTORY" => nil, "HIGHBALL_COMPILED_FILES" => "on" }.merge(more)
  end

  # [VALUE, the description]. Waits until the writer has ended.
  def boot(*files, env: {}, before: "")
    program = Process.spawn(environment(env), RbConfig.ruby, "-I", LIB, "-e", before + BOOT, *files,
                            out: (output = File.join(@place, "output")), err: errors_path)
    Deadline.wait("the output") do
      raise File.read(errors_path) if Process.wait(program, Process::WNOHANG)

      File.read(output).end_with?("\n")
    end
    Deadline.wait("the writer") { writers.empty? }
    eval(File.read(output)) # rubocop:disable Security/Eval -- this test's
  ensure
    Process.kill("KILL", program)
    Process.wait(program)
  end

  def failing_boot(file)
    _output, errors, ended = Open3.capture3(environment({}), RbConfig.ruby, "-I", LIB, "-e", BOOT, file)
    refute_predicate ended, :success?
    errors
  end

  # Processes that write to this cache.
  def writers = ProcessFacts.with_command("boot_cache/writer.rb", @cache)
end
