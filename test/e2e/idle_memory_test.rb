# frozen_string_literal: true

require_relative "../support/e2e_test"

# What a worker keeps of the memory that requests have needed, when there are none any more.
class IdleMemoryTest < E2ETest
  # Small pieces of memory, of which there is no garbage collection yet; then the worker's own private memory.
  APP = <<~RUBY
    run lambda { |_env|
      GC.disable
      40_000.times { |number| "\#{number} " * 200 }
      GC.enable
      [200, { "content-type" => "text/plain" }, [File.read("/proc/self/smaps_rollup")[/^Private_Dirty: *(\\d+)/, 1]]]
    }
  RUBY

  def test_an_idle_worker_gives_memory_back
    server = serve(folder_with("config.ru" => APP))
    grown = Integer(server.get("/").body) * 1024
    pid = server.worker_pids.first
    wait_for("the memory is given back", within: 60) { ProcessFacts.private_dirty_bytes([pid]) < grown - (20 * MIB) }
    assert_equal pid, server.worker_pids.first, "it is the same worker"
  end
end
