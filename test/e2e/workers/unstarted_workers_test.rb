# frozen_string_literal: true

require "cgi"
require_relative "../../support/broken_app"

# An application that loads, but whose workers do not get ready: in development it is diagnosed like a failed boot.
class UnstartedWorkersTest < BrokenAppTest
  NO_LUCK = "Highball.after_fork { raise 'no luck' }\n#{WELL}".freeze

  def test_a_block_after_the_fork_raises
    server = assert_diagnosed(folder_with("config.ru" => NO_LUCK), cause: "exception", file: "config.ru", line: 1)
    assert_equal "start_worker", server.status.dig("diagnosis", "step")
    assert_includes server.get("/", HTML).body, "starting a worker"
  end

  def test_the_same_without_preloading
    assert_diagnosed folder_with("config.ru" => NO_LUCK), cause: "exception", file: "config.ru", line: 1,
                                                          options: ["--preload", "off"]
  end

  def test_a_worker_that_ends_without_a_message
    app = folder_with("config.ru" => "Highball.after_fork { exit!(3) }\n#{WELL}")
    assert_diagnosed app, cause: "exit_called", remedy: /printed above/
  end

  def test_a_worker_that_hangs
    app = folder_with("config.ru" => "Highball.after_fork { sleep }\n#{WELL}")
    server = assert_diagnosed(app, cause: "boot_timeout", remedy: /--boot-timeout/, options: ["--boot-timeout", "2s"])
    assert_match(/config\.ru:1/, server.log) # where it hangs
  end

  def test_a_fixed_application_runs_after_a_reload
    app = folder_with("config.ru" => NO_LUCK)
    server = serve_broken(app, workers: 3)
    assert_equal 503, server.get("/", HTML).status
    File.write(File.join(app, "config.ru"), WELL)
    assert_equal "it runs", server.get("/", HTML).body
    wait_for("three workers and no other process") { server.settled? }
    assert_equal 3, server.worker_pids.length
  end

  # A worker that has served dies, and its replacement does not start.
  def test_one_that_served_before
    app = folder_with("config.ru" => "Highball.after_fork { raise 'no luck' if File.exist?('down') }\n#{WELL}")
    server = serve(app, environment: "development")
    File.write(File.join(app, "down"), "")
    HighballServer.kill(server.worker_pids.first)
    wait_for("the page") { server.get("/", HTML).body.include?("no luck") }
    assert_equal "failed", server.status["phase"]
    File.delete(File.join(app, "down"))
    assert_equal 200, server.get("/", HTML).status
  end

  def test_in_production_it_is_tried_again_and_then_given_up
    output, ended = HighballServer.run("serve", "-e", "production", "-p", "0", "--max-boot-failures", "2",
                                       folder_with("config.ru" => NO_LUCK))
    refute_predicate ended, :success?
    assert_match(/giving up: the application does not boot.*2 workers in a row.*no luck/m, output)
  end
end
