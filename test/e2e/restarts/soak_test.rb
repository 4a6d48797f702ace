# frozen_string_literal: true

# marks: long

require_relative "../../support/e2e_test"
require_relative "../../support/serves_tls"
require_relative "../../support/soak_run"

# Clients notice no operation on a running server. `just soak` runs longer, and with Redmine.
class SoakTest < E2ETest
  include ServesTls

  TIMES = LEVEL == "full" ? 3 : 1

  # Clients notice this one: a killed worker loses the requests that it had started.
  class Kill < Operations::Operation
    def perform
      Deadline.wait("a started request") { @server.status["workers"].sum { |worker| worker["in_flight"] } >= 2 }
      @server.worker_pids.each { |pid| HighballServer.kill(pid) }
      wait_for_workers(2)
    end
  end

  # Clients notice this one, too: the new version is older than the previous one.
  class Rollback < Operations::Operation
    def perform
      VersionedApp.write(@app.folder, 0)
      command("restart")
    end
  end

  # The front repeats no request of these in another worker.
  class Unrepeatable < VersionedApp
    def questions(server) = super.select { |question| question.method == "POST" }
  end

  Operations::KINDS.each do |name, kind|
    define_method(:"test_#{name}") do
      run = soak(VersionedApp.new(folder_with), kind, TIMES)
      assert_empty run.failures
      assert_operator run.load.answers, :>, 0
      assert_operator run.http2.answers, :>, 0
    end
  end

  def test_lost_requests_are_noticed
    long
    app = Unrepeatable.new(folder_with)
    config = "use(Class.new { def initialize(app) = @app = app; def call(env) = sleep(0.2) && @app.call(env) })\n"
    VersionedApp.write(app.folder, 1, config + VersionedApp::CONFIG)
    run = soak(app, Kill, 1)
    assert_operator run.load.failed[:failed], :>, 0
    assert_match(/: 502 /, run.failures.join("\n"))
  end

  def test_an_older_version_is_noticed
    run = soak(VersionedApp.new(folder_with), Rollback, 1)
    assert_equal SoakRun::CLIENTS, run.load.failed[:went_back]
    assert_match(/version 0 on a connection that has met 1/, run.failures.join("\n"))
  end

  private

  def soak(app, kind, times)
    server = serve_tls(app.folder, workers: 2, second_socket: File.join(folder_with, "app.sock"))
    port = tls_port(server)
    run = SoakRun.new(server, app, kind, https: ->(protocols) { tls_socket(port, alpn: protocols) })
    run.perform(times)
    run
  end
end
