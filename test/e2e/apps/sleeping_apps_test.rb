# frozen_string_literal: true

require_relative "../../support/many_apps_test_case"

# Idle applications that sleep, and wake up at a request.
class SleepingAppsTest < ManyAppsTestCase
  def test_one_that_sleeps_wakes_up_for_a_connection_that_a_hot_restart_has_left_behind
    server = serve_tired_and_good
    server.connect do |connection|
      assert_equal "good", JSON.parse(connection.get("/", { "Host" => "good" }).body).first
      fall_asleep(server)
      highball("upgrade", *server.which, within: 60)
      answer = connection.get("/", { "Host" => "tired" }, within: HighballServer::SERVES_WITHIN)
      assert_equal 200, answer.status, answer.body
      assert_equal "tired", JSON.parse(answer.body).first
    end
  end

  def test_one_that_does_not_wake_up_in_the_old_process_of_a_hot_restart
    server = serve_tired_and_good
    server.connect do |connection|
      connection.get("/", { "Host" => "good" })
      fall_asleep(server)
      highball("upgrade", *server.which, within: 60)
      File.write(File.join(@folder, "tired/config.ru"), BROKEN)
      answer = connection.get("/", { "Host" => "tired" }, within: HighballServer::SERVES_WITHIN)
      assert_equal 503, answer.status
    end
  end

  def test_the_server_goes_on_if_its_only_application_does_not_wake_up
    server = serve_entries({ "tired" => TIRED }, "tired/config.ru" => echo("tired"))
    fall_asleep(server)
    config = File.join(@folder, "tired/config.ru")
    File.write(config, BROKEN)
    assert_equal 503, server.get("/", within: HighballServer::SERVES_WITHIN).status
    assert_equal "failed", app(server, "tired")["phase"]
    File.write(config, echo("tired"))
    wait_for("the change to be noticed", within: 30) { server.get("/").status == 200 }
  end

  def test_a_restart_of_one_that_sleeps_does_nothing
    server = serve_tired_and_good
    fall_asleep(server)
    output = highball("restart", "tired", *server.which)
    assert_includes output, "tired is asleep; its next request boots the current code"
    assert_equal "asleep", app(server, "tired")["phase"]
  end

  # In its sleep it is not looked at.
  def test_a_restart_file_counts_again_after_the_sleep
    server = serve_entries({ "tired" => "sleep_after = '2s'" }, "tired/config.ru" => echo("tired"))
    fall_asleep(server)
    restart_file = File.join(@folder, "tired/tmp/restart.txt")
    FileUtils.mkdir_p(File.dirname(restart_file))
    wait_for("the restart", within: 60) do
      ask(server, "tired", "/") # so it is awake
      FileUtils.touch(restart_file)
      app(server, "tired")["restarts"].any? { |restart| restart["state"] == "done" }
    end
  end

  private

  TIRED = "sleep_after = '300ms'"
  private_constant :TIRED

  def serve_tired_and_good
    serve_entries({ "good" => "", "tired" => TIRED },
                  "good/config.ru" => echo("good"), "tired/config.ru" => echo("tired"))
  end

  def fall_asleep(server)
    wait_for("sleep", within: 30) { app(server, "tired")["phase"] == "asleep" }
  end

  def folder_with(...) = @folder = super
end
