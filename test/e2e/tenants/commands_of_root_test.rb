# frozen_string_literal: true

# marks: alone (commands find every server of a user on this machine, also those of other tests)

require_relative "../../support/control_test_case"

# Root asks the servers of other users, and is not led astray by one of them.
class CommandsOfRootTest < ControlTestCase
  def test_root_finds_the_server_of_another_user
    server = serve_as_victim
    output, ended = command("root", "status", *server.which)
    assert_predicate ended, :success?, output
    assert_includes output, "(pid #{server.pid}, user #{VICTIM})"
    output, ended = command("root", "restart", server.app)
    assert_predicate ended, :success?, output
    assert_includes output, "the server of #{VICTIM} (pid #{server.pid}):"
    output, ended = command("root", "stop", *server.which)
    assert_predicate ended, :success?, output
    assert_predicate server.wait, :success?
  end

  def test_a_service_is_found_from_a_shell_of_its_user_and_of_root
    runtime = Dir.mktmpdir("highball-test-", "/run").tap { |folder| FileUtils.chown(VICTIM, nil, folder) }
    server = serve_as_victim(env: { "XDG_RUNTIME_DIR" => runtime })
    assert_finds server, { "XDG_RUNTIME_DIR" => nil }
    assert_finds server, { "XDG_RUNTIME_DIR" => folder_of(VICTIM, "session", 0o700) }
    output, ended = command("root", "status", *server.which)
    assert_predicate ended, :success?, output
  ensure
    FileUtils.rm_rf(runtime) if runtime
  end

  def test_what_cannot_be_found_is_named_with_the_command_to_use
    session = folder_of(VICTIM, "session", 0o700)
    server = serve_as_victim(env: { "XDG_RUNTIME_DIR" => session })
    wait_for("the control socket") { File.socket?("#{session}/highball/#{server.pid}.sock") }
    { VICTIM => "so: env", "root" => "so: sudo -u #{VICTIM} env" }.each do |user, words|
      output, ended = command(user, "status", *server.which)
      refute_predicate ended, :success?, output
      assert_match(/runs as pid #{server.pid}, and .*#{words} XDG_RUNTIME_DIR=#{session} highball status$/, output)
    end
    assert_finds server, { "XDG_RUNTIME_DIR" => session }
  end

  def test_a_tenant_does_not_pass_for_the_server_on_anothers_port
    server = serve_as_victim
    forge_usual do |client, pid|
      client.puts(JSON.generate(STATUS.merge("pid" => pid, "ports" => [server.port], "apps" => [APP])))
    end
    output, ended = command("root", "status", *server.which)
    assert_predicate ended, :success?, output
    assert_equal ["(pid #{server.pid}, user #{VICTIM})"], output.scan(/\(pid [^)]*\)(?=, serving)/)
    output, ended = command("root", "stop", *server.which)
    assert_predicate ended, :success?, output
    assert_predicate server.wait, :success?
  end

  def test_a_tenant_does_not_pass_for_the_server_of_anothers_folder
    server = serve_as_victim
    app = APP.merge("app" => server.app, "link" => server.app)
    forge_usual { |client, pid| client.puts(JSON.generate(STATUS.merge("pid" => pid, "apps" => [app]))) }
    output, ended = command("root", "restart", server.app)
    assert_predicate ended, :success?, output
    assert_includes output, "the server of #{VICTIM} (pid #{server.pid}):"
    assert_predicate server.stop, :success?
    output, ended = command("root", "restart", server.app)
    refute_predicate ended, :success?, output
    assert_match(/the server of #{ATTACKER} .* which belongs to #{VICTIM}/, output)
  end

  def test_tenants_that_do_not_answer_keep_root_from_nothing
    server = serve_as_victim
    path = forge_usual { |client, _| client.wait_readable(30) && sleep(30) }
    39.times { |number| as_attacker { File.link(path, "#{File.dirname(path)}/#{number + 2}.sock") } }
    output, ended = command("root", "status", *server.which)
    assert_predicate ended, :success?, output
    assert_includes output, "(pid #{server.pid}, user #{VICTIM})"
    own = start_victim_as_root(env: { "HIGHBALL_CONTROL" => nil })
    wait_for("root's own") { command("root", "status", *own.which).last.success? }
    output, = command("root", "restart", *own.which)
    refute_match(/not answer/, output, "where one of root's own is meant, others are not asked")
  end
end
