# frozen_string_literal: true

require "minitest/autorun"
require "socket"
require "fileutils"
require "io/wait"
require "tmpdir"
require "highball/control_socket"
require_relative "../support/deadline"

# The mold from the supervisor's side: a real Ruby process at the other end of a control socket.
class MoldTest < Minitest::Test
  BOOT = File.expand_path("../../lib/highball/boot.rb", __dir__)
  HELLO = "run ->(_env) { [200, {}, []] }\n"
  # Of a heap that takes time to be laid out.
  LARGE = "KEPT = Array.new(150_000) { Object.new }\n"
  # Writes down when workers are forked and when the heap is laid out.
  HEAP_ORDER = <<~RUBY.freeze
    #{LARGE}
    NOTE = ->(what) { File.write("order", "\#{what}\n", mode: "a") }
    Highball::HeapLayout.singleton_class.prepend(Module.new { def arrange(**) = super.tap { NOTE.call("laid_out") } })
    Process.singleton_class.prepend(Module.new { def _fork = super.tap { |pid| NOTE.call("forked") unless pid.zero? } })
    Highball.after_fork { raise "no worker is needed here" }
    #{HELLO}
  RUBY

  def teardown
    @control&.close # the mold ends with it
    Process.wait(@pid) if @pid
    FileUtils.rm_rf(@folder) if @folder
  end

  def test_it_tells_each_step_and_then_what_it_has_booted
    boot("config.ru" => HELLO, "public/robots.txt" => "")
    messages = until_said("booted")
    steps = messages.filter_map { |message| message[:step] }
    assert_equal %w[load_highball find_app load_bundler load_app prepare_fork], steps
    booted = messages.last
    assert_equal [@pid, RUBY_VERSION, "Rack", true], booted.values_at(:pid, :ruby, :framework, :restartable)
    assert_equal File.join(@folder, "public"), booted[:public]
  end

  def test_before_bundler_nothing_but_highball_is_loaded
    boot("config.ru" => HELLO, "Gemfile" => <<~RUBY)
      loaded = $LOADED_FEATURES.grep(%r{/(json|socket|stringio|logger)(\\.rb|\\.so|/)}).reject { |path| path.include?("bundler") }
      File.write("loaded", loaded.join("\\n"))
    RUBY
    until_said("booted", "failed")
    assert_empty File.read(File.join(@folder, "loaded"))
  end

  # As where Rack starts the server.
  def test_a_config_ru_finds_parts_of_the_standard_library
    boot("config.ru" => "[URI, Set, Date, Tempfile, FileUtils, StringIO, Socket, Time.now.httpdate]\n#{HELLO}")
    assert_equal "booted", until_said("booted", "failed").last[:type]
  end

  def test_a_failure_names_step_place_and_remedy
    boot("config.ru" => "require 'no_such_gem_at_all'\n")
    failure = until_said("failed").last
    assert_equal "load_app", failure[:step]
    assert_equal ["LoadError", File.join(@folder, "config.ru"), 1], failure[:error].values_at(:class, :file, :line)
    assert_match(/gem install no_such_gem_at_all/, failure[:remedy])
    refute_predicate wait, :success?
  end

  def test_an_empty_folder_is_a_failure
    boot("README" => "")
    assert_match(/config\.ru/, until_said("failed").last[:remedy])
  end

  def test_before_fork_runs_once_and_a_worker_that_cannot_start_says_why
    boot("config.ru" => <<~RUBY)
      Highball.before_fork { File.write("before", Process.pid.to_s, mode: "a") }
      Highball.after_fork { |number| raise "worker \#{number} has no luck" }
      #{HELLO}
    RUBY
    until_said("booted")
    worker = order_worker(7)
    (hello, descriptors), (failed,) = Array.new(2) { receive(worker) }
    assert_equal ["hello", 7], hello.values_at(:type, :worker)
    refute_equal @pid, hello[:pid]
    assert_equal 1, descriptors.length
    assert_equal ["failed", "worker 7 has no luck"], [failed[:type], failed[:error][:message]]
    assert_equal @pid.to_s, File.read(File.join(@folder, "before"))
  end

  def test_hooks_may_be_in_a_separate_file_that_is_loaded_first
    boot("config/highball.rb" => "Highball.before_fork { File.write('before', LOADED) }\n",
         "config.ru" => "LOADED = 'the application is there'\n#{HELLO}")
    until_said("booted")
    assert_equal "the application is there", File.read(File.join(@folder, "before"))
  end

  def test_databases_are_disconnected_before_every_fork
    boot("config.ru" => <<~RUBY)
      module ActiveRecord
        module VERSION; MAJOR = 7; MINOR = 1; end
        module Base
          def self.connection_handler = self
          def self.connection_pool_list(_role) = [self]
          def self.disconnect! = File.write("disconnected", "\#{Process.pid}\n", mode: "a")
        end
      end
      Highball.after_fork { raise "no worker is needed here" }
      #{HELLO}
    RUBY
    until_said("booted")
    2.times do |number|
      worker = order_worker(number + 1)
      2.times { receive(worker) } # its hello, and why it cannot start
    end
    assert_equal [@pid] * 3, File.readlines(File.join(@folder, "disconnected")).map(&:to_i)
  end

  # ActiveSupport::ForkTracker uses one or the other, depending on its release.
  def test_forks_can_be_tracked
    boot("config.ru" => <<~RUBY)
      Process.singleton_class.prepend(Module.new do
        def _fork = super.tap { |pid| File.write("forks", "_fork\n", mode: "a") if pid.zero? }
        def fork = super.tap { |pid| File.write("forks", "fork\n", mode: "a") unless pid }
      end)
      Highball.after_fork { raise "no worker is needed here" }
      #{HELLO}
    RUBY
    until_said("booted")
    worker = order_worker(1)
    2.times { receive(worker) }
    # In the worker, and not in the process between it and the mold.
    assert_equal %w[_fork fork], File.readlines(File.join(@folder, "forks"), chomp: true)
  end

  # The first worker need not wait until the heap is laid out.
  def test_the_heap_is_laid_out_after_the_first_fork_and_once
    boot("config.ru" => HEAP_ORDER)
    until_said("booted")
    workers = [1, 2].map { |number| order_worker(number) }
    assert_equal [["laid_out", 1]], [receive(@control).first.values_at(:type, :worker)]
    workers.each { |worker| 2.times { receive(worker) } } # its hello, and why it cannot start
    assert_order %w[forked laid_out forked]
    assert_nil @control.to_io.wait_readable(0)
  end

  def test_the_heap_is_laid_out_before_the_first_fork_where_workers_serve_already
    boot({ "config.ru" => HEAP_ORDER }, "HIGHBALL_BOOTS_BESIDE" => "on")
    until_said("booted")
    worker = order_worker(1)
    2.times { receive(worker) }
    assert_order %w[laid_out forked]
    assert_nil @control.to_io.wait_readable(0)
  end

  def test_no_garbage_is_collected_between_the_boot_and_the_first_fork
    boot("config.ru" => <<~RUBY)
      #{LARGE}
      Process.singleton_class.prepend(Module.new do
        def _fork
          COUNT << GC.count
          1_000_000.times { String.new("garbage") }
          super
        end
      end)
      COUNT = []
      Highball.after_fork { raise GC.count == COUNT.first ? "none" : "some" }
      #{HELLO}
    RUBY
    until_said("booted")
    worker = order_worker(1)
    failed = Array.new(2) { receive(worker).first }.last
    assert_equal "none", failed[:error][:message]
  end

  def test_databases_that_cannot_be_disconnected_are_no_end_of_the_mold
    boot("config.ru" => <<~RUBY)
      module ActiveRecord
        module VERSION; MAJOR = 7; MINOR = 1; end
        module Base
          def self.connection_handler = @asked ? raise("gone") : (@asked = true) && self
          def self.connection_pool_list(_role) = []
        end
      end
      #{HELLO}
    RUBY
    until_said("booted")
    2.times do |number|
      order_worker(number)
      message, = receive(@control)
      assert_equal %w[fork_failed gone], message.values_at(:type, :message)
    end
  end

  def test_a_fork_that_fails_is_reported
    boot("config.ru" => <<~RUBY)
      Process.singleton_class.prepend(Module.new { def _fork = raise(Errno::EAGAIN) })
      #{HELLO}
    RUBY
    until_said("booted")
    order_worker(3)
    message, = receive(@control)
    assert_equal ["fork_failed", 3], message.values_at(:type, :worker)
  end

  def test_it_tells_its_heap
    boot("config.ru" => HELLO)
    until_said("booted")
    @control.say(:heap)
    answer, = receive(@control)
    assert_equal "heap", answer[:type]
    assert_operator answer[:heap][:live_slots], :>, 10_000
  end

  def test_it_ends_when_the_supervisor_goes_even_while_the_application_boots
    boot("config.ru" => "loop {}\n")
    until_said("step") { |message| message[:step] == "load_app" }
    @control.close
    Deadline.wait("end of the mold") { Process.wait(@pid, Process::WNOHANG) }
    @pid = @control = nil
  end

  private

  def assert_order(events)
    file = File.join(@folder, "order")
    Deadline.wait("#{events.length} events") { File.exist?(file) && File.readlines(file).length >= events.length }
    assert_equal events, File.readlines(file, chomp: true)
  end

  def boot(files, environment = {})
    @folder = File.realpath(Dir.mktmpdir("highball-mold"))
    files.each do |name, content|
      FileUtils.mkdir_p(File.dirname(File.join(@folder, name)))
      File.write(File.join(@folder, name), content)
    end
    ours, theirs = Socket.pair(:UNIX, :SEQPACKET)
    @control = Highball::ControlSocket.new(ours)
    usual = { "HIGHBALL_CONTROL_FD" => theirs.fileno.to_s, "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil }
    environment = usual.merge(environment)
    @pid = Process.spawn(environment, RbConfig.ruby, BOOT, chdir: @folder, theirs => theirs)
    theirs.close
  end

  # The supervisor's end of the worker's control socket. The ring's descriptors are not used.
  def order_worker(number)
    ours, theirs = Socket.pair(:UNIX, :SEQPACKET)
    File.open(File::NULL) do |nothing|
      @control.say(:fork, worker: number, descriptors: [nothing, nothing, nothing, theirs])
    end
    theirs.close
    Highball::ControlSocket.new(ours)
  end

  def until_said(*types)
    messages = []
    loop do
      message, = receive(@control)
      flunk "the mold has ended after the messages #{messages}" unless message
      messages << message
      return messages if types.include?(message[:type]) && (!block_given? || yield(message))
    end
  end

  def receive(control)
    assert control.to_io.wait_readable(20), "no message within 20 s"
    control.receive
  end

  def wait
    status = Process.wait2(@pid).last
    @pid = nil
    status
  end
end
