# frozen_string_literal: true

require "minitest/autorun"
require "fileutils"
require "rbconfig"
require "tmpdir"
require "highball/boot_cache"
require_relative "../support/deadline"
require_relative "../support/process_facts"

# Another process compiles files while an application boots. Each boot is a process.
class BootCacheAheadTest < Minitest::Test
  LIB = File.expand_path("../../lib", __dir__)
  # Runs the program of a test in the block in which an application is loaded.
  BOOT = <<~'RUBY'
    require "highball/boot_cache"
    require "support/deadline"
    require "support/process_facts"
    def cached?(path) = File.exist?(File.join(ENV["XDG_CACHE_HOME"], "highball/boot", Highball::BootCache.part) + path)
    def wait_for(*paths) = Deadline.wait("the cache") { paths.all? { |path| cached?(path) } }
    def started? = ProcessFacts.with_command("boot_cache/ahead_writer.rb", ENV["XDG_CACHE_HOME"]).any?
    Highball::BootCache.take_decision
    Highball::BootCache.during(app: ENV["APP"]) { eval($stdin.read) }
    puts "booted: #{Highball::BootCache.description.values.last}"
    $stdout.flush
    sleep
  RUBY
  # As many files as make another process worth it.
  MANY = Highball::BootCache::Ahead::MANY

  def setup
    @place = File.realpath(Dir.mktmpdir)
    @cache = File.join(@place, "cache")
    @app = File.join(@place, "app")
    @models = Array.new(5) { |index| write("app/app/models/model#{index}.rb", "MODEL#{index} = __FILE__\n") }
    @gem = Array.new(MANY * 2) { |index| write("gems/many-1.0/lib/many/part#{index}.rb", "PART#{index} = 1\n") }
  end

  def teardown
    FileUtils.rm_rf(@place)
  end

  def test_the_rest_of_a_gem_and_the_application_are_compiled_before_they_are_loaded
    other = write("gems/other-1.0/lib/other.rb", "OTHER = 1\n")
    assert_equal "booted: #{MANY + 5} of #{(MANY * 2) + 5} files", booted(<<~RUBY)
      files = #{@gem.inspect}
      files.first(#{MANY}).each { |file| require file }
      wait_for(*files.drop(#{MANY}), *#{@models.inspect})
      files.drop(#{MANY}).each { |file| require file }
      #{@models.inspect}.each { |file| require file }
      raise "wrong file" unless MODEL0 == #{@models[0].inspect} && MODEL0.encoding == Encoding.default_external
    RUBY
    refute_path_exists place(other), "nothing has loaded this gem"
    Deadline.wait("the end of the process") { compilers.empty? }
  end

  def test_outside_of_gems_the_folder_with_the_name_of_a_file
    file, part, other = %w[named named/part other].map { |name| write("lib/#{name}.rb", "") }
    booted("#{load_many}; require #{file.inspect}; wait_for(#{part.inspect})")
    refute_path_exists place(other), "nothing has loaded this file"
  end

  def test_paths_beyond_ascii
    model = write("app/app/models/größe.rb", "SIZE = __FILE__\n")
    assert_match(/booted: 1 of/, booted(<<~RUBY))
      #{load_many}
      wait_for(#{model.inspect})
      require #{model.inspect}
      raise "wrong path" unless SIZE == #{model.inspect} && "ö" + SIZE
    RUBY
  end

  def test_few_files_are_not_worth_it
    booted("#{@gem.first(MANY - 1).inspect}.each { |file| require file }; raise 'needless' if started?")
  end

  def test_only_where_highball_has_decided_so
    booted("#{load_many}; raise 'not allowed' if started?", decision: "on")
    booted("#{load_many}; raise 'not started' unless started?")
  end

  def test_changed_files_are_compiled_again_and_others_are_not
    2.times { booted("#{load_many}; wait_for(*#{@models.inspect})") }
    File.write(@models[0], "MODEL0 = :new\n")
    before = File.stat(place(@models[1])).ino
    gem = Array.new(MANY) { |index| write("gems/new-1.0/lib/new#{index}.rb", "") }
    booted(<<~RUBY)
      #{gem.inspect}.each { |file| require file }
      binary = -> { File.binread(#{place(@models[0]).inspect}) }
      Deadline.wait("the new file") { binary.call.include?("new") }
      require #{@models[0].inspect}
      raise "old code" unless MODEL0 == :new
    RUBY
    assert_equal before, File.stat(place(@models[1])).ino
  end

  # What the application's owner puts into its folders holds nothing up.
  def test_files_that_are_none
    File.mkfifo(File.join(@app, "app/a.rb"))
    Dir.mkdir(File.join(@app, "app/b.rb"))
    File.symlink("/dev/zero", File.join(@app, "app/c.rb"))
    File.symlink(@app, File.join(@app, "app/loop"))
    write("app/app/d.rb", "def (\n")
    last = write("app/app/zz.rb", "")
    booted("#{load_many}; wait_for(#{last.inspect})")
    Deadline.wait("the end of the process") { compilers.empty? }
  end

  def test_the_process_ends_with_the_boot
    booted(<<~RUBY, lines: 0)
      #{load_many}
      wait_for(*#{@models.inspect})
      Process.kill("KILL", Process.pid) if fork # the child has the pipe, too
      sleep
    RUBY
    Deadline.wait("its end") { compilers.empty? }
  ensure
    ProcessFacts.with_environment("XDG_CACHE_HOME", @cache).each { |pid| Process.kill("KILL", pid) }
  end

  def test_a_boot_goes_on_without_the_process
    output = booted(<<~RUBY, lines: 2)
      #{load_many}
      pids = ProcessFacts.with_command("boot_cache/ahead_writer.rb", #{@cache.inspect})
      Process.kill("KILL", *pids)
      Deadline.wait("its end") { pids.none? { |pid| Process.kill(0, pid) rescue false } }
      File.write(#{@models[0].inspect}, "MODEL0 = 2\n")
      require #{@models[0].inspect}
    RUBY
    assert_match(/\Ahighball: files are not compiled ahead of the boot any more: .*\nbooted: 0 of \d+ files\z/, output)
  end

  def test_the_status_of_the_applications_children_is_left_alone
    booted("system('exit 3'); #{load_many}; raise 'another status' unless $?.exitstatus == 3")
  end

  private

  def write(name, content)
    File.join(@place, name).tap do |path|
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, content)
    end
  end

  # Enough for the process to begin.
  def load_many = "#{@gem.inspect}.each { |file| require file }"

  def place(path) = File.join(@cache, "highball/boot", Highball::BootCache.part) + path

  # Runs this program as a boot, until it has booted. Returns these lines of output.
  def booted(program, decision: "ahead", lines: 1)
    environment = { "XDG_CACHE_HOME" => @cache, "CACHE_DIRECTORY" => nil, "HIGHBALL_COMPILED_FILES" => decision,
                    "APP" => @app }
    output = File.join(@place, "output")
    input = write("program", program)
    boot = Process.spawn(environment, RbConfig.ruby, "-I", LIB, "-I", File.expand_path("..", __dir__), "-e", BOOT,
                         in: input, %i[out err] => [output, "w"])
    Deadline.wait("the boot") { ended?(boot) || File.read(output).include?("booted: ") }
    assert_equal lines, File.readlines(output).length, File.read(output)
    File.read(output).chomp
  ensure
    end_process(boot)
  end

  def ended?(pid) = !Process.wait(pid, Process::WNOHANG).nil?

  def end_process(pid)
    Process.kill("KILL", pid)
    Process.wait(pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil # it has ended
  end

  # Processes that compile ahead for this cache.
  def compilers = ProcessFacts.with_command("boot_cache/ahead_writer.rb", @cache)
end
