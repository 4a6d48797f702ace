# frozen_string_literal: true

require_relative "../../support/e2e_test"

# What a worker keeps of the memory that requests have needed.
class FreedMemoryTest < E2ETest
  # /garbage leaves small pieces of memory, of which there is no garbage collection yet. /holes leaves them free, with
  # some that are in use between them. Each answers with the worker's own private memory.
  APP = <<~RUBY
    KEPT = []
    run lambda { |env|
      GC.disable
      case env["PATH_INFO"]
      when "/garbage" then 40_000.times { |number| "\#{number} " * 200 }
      when "/holes" then Array.new(40_000) { |number| "\#{number} " * 200 }.each_slice(50) { |some| KEPT << some.last }
      end
      GC.enable
      GC.start if env["PATH_INFO"] == "/holes"
      [200, { "content-type" => "text/plain" }, [File.read("/proc/self/smaps_rollup")[/^Private_Dirty: *(\\d+)/, 1]]]
    }
  RUBY

  def test_an_idle_worker_gives_memory_back
    server = serve(folder_with("config.ru" => APP))
    grown = Integer(server.get("/garbage").body) * 1024
    pid = server.worker_pids.first
    wait_for("the memory is given back", within: 60) { ProcessFacts.private_dirty_bytes([pid]) < grown - (20 * MIB) }
    assert_equal pid, server.worker_pids.first, "it is the same worker"
  end

  def test_a_worker_gives_free_memory_back_while_it_serves
    server = serve(folder_with("config.ru" => APP))
    grown = Integer(server.get("/holes").body) * 1024
    pid = server.worker_pids.first
    wait_for("the memory is given back", within: 60) { Integer(server.get("/").body) * 1024 < grown - (20 * MIB) }
    assert_equal pid, server.worker_pids.first, "it is the same worker"
  end
end
