# frozen_string_literal: true

require "json"
require_relative "../../support/e2e_test"

# jemalloc serves the processes of an application in production, and those alone.
class AllocatorTest < E2ETest
  APP = <<~'RUBY'
    require "open3"
    ASK = "print [File.read('/proc/self/maps').scan(/\\S*jemalloc\\S*/).uniq, ENV.keys.grep(/ALLOC|PRELOAD/)]"
    run lambda { |env|
      command = { "/child" => ["ruby", "-e", ASK], "/worker" => ["cat", "/proc/#{Process.pid}/maps"],
                  "/forked" => nil, "/environment" => ["env"] }.fetch(env["PATH_INFO"], ["true"])
      forked = IO.popen("-") { |io| io ? io.read : eval(ASK) } unless command
      [200, {}, [forked || Open3.capture2(*command).first]]
    }
  RUBY
  NAME = /\Ajemalloc \d+\.\d+\.\d+\z/
  LIBRARY = "highball_jemalloc.so"

  def setup
    super
    @folder = folder_with("config.ru" => APP)
  end

  def test_it_serves_molds_and_workers_and_no_program_that_they_start
    server = serve(@folder)
    [server.mold_pid, *server.worker_pids].each { |pid| assert_includes File.read("/proc/#{pid}/maps"), LIBRARY }
    refute_includes File.read("/proc/#{server.server_pid}/maps"), "jemalloc"
    assert_equal "[[], []]", server.get("/child").body
    assert_empty server.get("/environment").body.lines.grep(/ALLOC|PRELOAD/)
    assert_includes server.get("/forked").body, LIBRARY
    assert_match NAME, server.status.dig("allocator", "name")
    assert_match(/booted .*allocator="jemalloc \d/, server.log)
    assert_match(/^ *allocator +jemalloc \d/, command_output(server, "status", "--details"))
  end

  def test_it_stays_over_restarts_reforks_and_for_workers_that_load_the_application_themselves
    server = serve(@folder, workers: 2)
    %w[restart refork].each do |command|
      command_output(server, command)
      assert_includes server.get("/worker").body, LIBRARY
    end
    server.stop
    assert_includes serve(@folder, "--preload", "off").get("/worker").body, LIBRARY
  end

  def test_options_and_the_environment_decide
    assert_system("allocator = system", serve(@folder, "--allocator", "system"))
    assert_system("the environment is development", serve(@folder, environment: "development"))
    assert_system("MALLOC_ARENA_MAX is set", serve(@folder, env: { "MALLOC_ARENA_MAX" => "2" }))
    server = serve(@folder, "--allocator", "jemalloc", environment: "development", env: { "MALLOC_ARENA_MAX" => "2" })
    assert_includes server.get("/worker").body, LIBRARY
    assert_equal ["MALLOC_ARENA_MAX=2\n"], server.get("/environment").body.lines.grep(/ALLOC|PRELOAD/)
  end

  def test_a_users_own_is_left_alone
    theirs = Dir["/usr/lib/*/libjemalloc.so.2"].first or skip "libjemalloc2 is not installed"
    server = serve(@folder, env: { "LD_PRELOAD" => theirs })
    refute_includes server.get("/worker").body, LIBRARY
    assert_includes server.get("/child").body, "libjemalloc.so.2"
    assert_match NAME, server.status.dig("allocator", "name")
  end

  def test_doctor_names_it
    output, = HighballServer.run("doctor", "--json", "-e", "production", @folder, within: 60)
    check = JSON.parse(output).fetch("checks").find { |one| one["name"] == "allocator" }
    assert_match NAME, check["what"]
  end

  private

  def assert_system(why, server)
    refute_includes server.get("/worker").body, "jemalloc"
    assert_equal why, server.status.dig("allocator", "off")
    server.stop
  end
end
