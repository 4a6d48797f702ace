# frozen_string_literal: true

require "minitest/autorun"
require "open3"
require "rbconfig"

# How many heaps malloc has for the threads of a process that serves requests.
class ArenasTest < Minitest::Test
  # Threads that allocate at the same time, and then glibc's own report.
  PROGRAM = <<~RUBY
    require "fiddle"
    require ARGV.first
    Highball::Extension.load if ARGV.first == "highball/native"
    threads = Array.new(4) { Thread.new { Array.new(1000) { Fiddle.malloc(200) }.tap { sleep } } }
    sleep 0.01 until threads.all?(&:stop?)
    library = Fiddle.dlopen(nil)
    output = Fiddle::Pointer.new(library["stdout"]).ptr
    Fiddle::Function.new(library["malloc_info"], [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT).call(0, output)
    Fiddle::Function.new(library["fflush"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT).call(output)
  RUBY
  UNSET = { "MALLOC_ARENA_MAX" => nil, "GLIBC_TUNABLES" => nil }.freeze

  def test_all_threads_share_one
    assert_equal 1, arenas(UNSET)
  end

  def test_unless_the_user_has_chosen
    assert_equal 3, arenas(UNSET.merge("MALLOC_ARENA_MAX" => "3"))
    assert_operator arenas(UNSET.merge("GLIBC_TUNABLES" => "glibc.malloc.arena_max=8")), :>, 1
  end

  def test_pstore_changes_nothing_in_other_programs
    assert_operator arenas(UNSET, feature: "highball/pstore"), :>, 1
  end

  private

  def arenas(environment, feature: "highball/native")
    output, error, status = Open3.capture3(environment, RbConfig.ruby, "-Ilib", "-e", PROGRAM, feature)
    skip "this malloc has no malloc_info" if error.include?("unknown symbol")
    assert_predicate status, :success?, error
    output.scan(/<heap nr="\d+">/).length
  end
end
