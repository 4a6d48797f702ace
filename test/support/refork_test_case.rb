# frozen_string_literal: true

require_relative "restart_test_case"

# A test that reforks workers.
class ReforkTestCase < RestartTestCase
  # Workers with higher numbers wait until `let_go`.
  def self.waiting_from(number)
    <<~RUBY
      Highball.after_fork { |number| sleep 0.01 until number < #{number} || File.exist?(File.join(__dir__, "go")) }
      #{CONFIG}
    RUBY
  end

  private

  # Reforks, and returns the number of the worker that was promoted.
  def refork(server)
    output = highball("refork", *server.which, within: 60)
    output[/former worker (\d+)/, 1].to_i
  end

  # Requests a refork that fails, and returns the message.
  def refork_fails(server)
    highball_fails("refork", *server.which, within: 60)
  end

  def refork_stage(server) = server.status.dig("refork", "state")

  # Waits until a refork has reached this stage: its status.
  def wait_for_refork(server, stage)
    wait_for("refork: #{stage}", within: 30) do
      refork = server.status["refork"]
      refork if refork && refork["state"] == stage
    end
  end

  def assert_whole(server, workers)
    wait_for("#{workers} workers") { workers(server) == Array.new(workers, "serving") }
    assert_equal Array.new(workers, 1), generations(server)
  end
end
