# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/load"

# Whether requests of a worker compute or wait for something is learned from its threads. The front wakes more of them
# only where that is of use.
class OverlapTest < E2ETest
  APP = <<~RUBY
    def cpu_ms = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :float_millisecond)

    run lambda { |env|
      if env["PATH_INFO"] == "/compute"
        ends_at = cpu_ms + 5
        nil while cpu_ms < ends_at
      else
        sleep 0.02
      end
      [200, {}, []]
    }
  RUBY
  # PROTOCOL.md of the ring: the word in which the worker says it.
  COMPUTES_AT = 144
  CLIENTS = 3
  # More than there are requests: some sleep, and are woken while others compute. Where all are busy, none is woken, and
  # nothing can be learned.
  THREADS = 8

  def test_it_is_learned_from_threads_that_wait_for_the_gvl
    server = serve(folder_with("config.ru" => APP), threads: THREADS)
    [["/compute", 1], ["/wait", 0], ["/compute", 1]].each do |path, expected|
      outcomes = Load.during(server, clients: CLIENTS, target: path) do
        wait_for("#{path} to be noticed") { computes(server) == expected }
      end
      assert_equal [200], outcomes.map(&:result).uniq
    end
  end

  private

  # What the only worker says, in the memory that it shares with the server.
  def computes(server)
    worker = server.status["apps"].first["workers"].first["pid"]
    ring = File.foreach("/proc/#{worker}/maps").grep(/highball-ring/).first
    File.binread("/proc/#{worker}/mem", 4, ring[/\A\h+/].hex + COMPUTES_AT).unpack1("L<")
  end
end
