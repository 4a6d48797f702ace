# frozen_string_literal: true

require_relative "../support/e2e_test"
require_relative "../support/soak_run"

# Clients notice nothing of what is done to a running server. `just soak` does it longer, and with Redmine.
class SoakTest < E2ETest
  TIMES = 3
  WORKERS = 2

  Operations::KINDS.each do |name, kind|
    define_method(:"test_#{name}") do
      app = VersionedApp.new(folder_with)
      server = serve(app.folder, workers: WORKERS, second_socket: File.join(folder_with, "app.sock"))
      run = SoakRun.new(server, app, kind)
      run.perform(TIMES)
      assert_empty run.failures
      assert_operator run.load.answers, :>, 0
    end
  end
end
