# frozen_string_literal: true

require_relative "highball_server"

# For tests with a @server: each way in which workers are replaced.
module ReplacedWorkers
  private

  # A rolling restart, a refork, and the death of each worker, one after the other. Workers are killed within
  # `between_requests`: a request that a killed worker has begun is answered with 502.
  def replace_workers
    first = @server.worker_pids
    highball("restart", *@server.which, within: 60)
    assert_empty first & @server.worker_pids
    highball("refork", *@server.which, within: 60)
    wait_for("the workers to serve") { @server.settled? }
    @server.worker_pids.each do |pid|
      between_requests { HighballServer.kill(pid) }
      wait_for("another worker") { !@server.worker_pids.include?(pid) && @server.settled? }
    end
  end

  # For tests that send requests meanwhile.
  def between_requests = yield
end
