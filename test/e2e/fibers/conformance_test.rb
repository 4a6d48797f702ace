# frozen_string_literal: true

require "fileutils"
require "minitest/autorun"
require "open3"
require "tmpdir"
require_relative "../../support/debian_source"

# Ruby's own tests of schedulers of fibers, with Highball's scheduler.
class FiberConformanceTest < Minitest::Test
  LIB = ENV.fetch("HIGHBALL_LIB") { File.expand_path("../../../lib", __dir__) }

  # It leaves a scheduled fiber by `Fiber.yield`, for good. Here fibers switch by `transfer`.
  LEFT_OUT = %w[test_mutex_deadlock].freeze

  SCHEDULER = <<~'RUBY'
    require "io/nonblock"
    require "socket"
    require "tempfile"
    require "highball/native"
    Highball::Extension.load
    require "highball/fiber_scheduler"

    class Scheduler < Highball::FiberScheduler
      # The tests look into it.
      def waiting = @suspended
    end
    IOBufferScheduler = Scheduler

    class BrokenUnblockScheduler < Scheduler
      def unblock(blocker, fiber)
        super
        raise "Broken unblock!"
      end
    end

    class SleepingUnblockScheduler < Scheduler
      def unblock(blocker, fiber)
        super
        sleep(0.1)
      end
    end

    class SleepingBlockingScheduler < Scheduler
      def kernel_sleep(seconds = nil)
        Fiber.blocking { sleep 0.0001 }
        super
      end
    end
  RUBY

  RUNNER = <<~'RUBY'
    require "test/unit"
    require "core_assertions"
    require "envutil"
    Test::Unit::TestCase.include(Test::Unit::CoreAssertions)
    load ARGV.first
  RUBY

  def test_the_tests_of_ruby
    Dir.mktmpdir("highball-ruby") do |folder|
      DebianSource.unpack("ruby#{RUBY_VERSION[/\A\d+\.\d+/]}", RUBY_VERSION, "test/fiber/*", "tool/lib/*", into: folder)
      File.write(File.join(folder, "test/fiber/scheduler.rb"), SCHEDULER)
      tests = Dir.children(File.join(folder, "test/fiber")).grep(/\Atest_/).sort
      assert_operator tests.size, :>, 10
      results = tests.to_h { |test| [test, run_test(folder, test)] }
      failed = results.reject { |_, (output, _)| output[/^\d+ tests, .* 0 failures, 0 errors/] }
      assert_empty(failed.map { |test, (output, _)| "#{test}:\n#{output}" })
    end
  end

  private

  def run_test(folder, test)
    options = ["-I#{folder}/tool/lib", "-I#{folder}/test/fiber", "-e", RUNNER]
    Open3.capture2e({ "RUBYLIB" => LIB }, "timeout", "120", RbConfig.ruby, *options,
                    "#{folder}/test/fiber/#{test}", "-n", "!/#{LEFT_OUT.join('|')}/", chdir: folder)
  end
end
