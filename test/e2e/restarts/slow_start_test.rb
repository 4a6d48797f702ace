# frozen_string_literal: true

# marks: few (its clients have to keep the server busy)

require "json"
require_relative "../../support/restart_test_case"

# A worker of a new version gets few requests until it is as fast as the old ones.
class SlowStartTest < RestartTestCase
  CLIENTS = 8
  WORKERS = 2
  THREADS = 4
  COLD = 6 # requests
  MUTEX = Mutex.new

  # Each worker takes long for its first requests, the probe among them. Its answer says how many requests it was at.
  APP = <<~RUBY.freeze
    require "json"
    mutex = Mutex.new
    begun = running = 0
    run lambda { |_env|
      number, beside = mutex.synchronize { [begun += 1, running += 1] }
      sleep number <= #{COLD} ? 0.1 : 0.02
      mutex.synchronize { running -= 1 }
      [200, {}, [JSON.generate({ worker: Process.pid, number:, beside: })]]
    }
  RUBY

  def test_cold_workers_get_one_request_at_a_time
    server = serve(folder_with("config.ru" => APP), workers: WORKERS, threads: THREADS)
    answers = under_load(server) do |by_worker|
      restart(server)
      wait_for("a whole share for each new worker") do
        server.worker_pids.all? { |pid| by_worker[pid].any? { |answer| answer["beside"] > 1 } }
      end
    end
    server.worker_pids.each do |pid|
      cold = answers[pid].select { |answer| answer["number"] <= COLD }
      assert_equal (2..COLD).to_a, cold.map { |answer| answer["number"] }.sort # the probe was the first
      assert_equal [1], cold.map { |answer| answer["beside"] }.uniq
    end
  end

  private

  # Yields, by worker, the answers to clients that send requests over new connections until the block has returned.
  # Returns them.
  def under_load(server)
    stopped = false
    by_worker = Hash.new { |_, _| [] }
    clients = Array.new(CLIENTS) do
      Thread.new do
        until stopped
          answer = JSON.parse(server.get("/").body)
          MUTEX.synchronize { by_worker[answer["worker"]] += [answer] }
        end
      end
    end
    yield by_worker
    stopped = true
    clients.each(&:join)
    by_worker
  ensure
    clients.each(&:kill)
  end
end
