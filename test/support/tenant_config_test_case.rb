# frozen_string_literal: true

require_relative "tenants_test_case"

# A test of the trust in a tenant's own configuration file.
class TenantConfigTestCase < TenantsTestCase
  FILE = "config/highball.toml"
  ENVIRONMENT = "run ->(_env) { [200, {}, [ENV.to_h.inspect]] }\n"

  def setup
    super
    @proof = File.join(@place, "proof").tap { |folder| FileUtils.mkdir(folder, mode: 0o1777) }
    File.chmod(0o1777, @proof)
  end

  private

  # A folder of the attacker's, for what it puts there.
  def home_of_attacker = app_of(ATTACKER, { ".profile" => "" }, "home")

  def evil = File.join(@place, "attacker", "evil")
  def proofs = Dir.children(@proof)
  # A program that records the user who runs it.
  def evil_files = { "evil" => "#!/bin/sh\nid -u > #{@proof}/$$\nexec ruby \"$@\"\n" }

  def attacker_app(files = {})
    super.tap { |folder| File.chmod(0o755, evil) if File.exist?(evil) && folder }
  end

  # The tenant writes a file.
  def write(app, file, text)
    as_attacker do
      FileUtils.mkdir_p(File.dirname(File.join(app, file)))
      FileUtils.rm_f(File.join(app, file))
      File.write(File.join(app, file), text)
    end
  end

  def entry(app) = "[[app]]\npath = '#{app}'\n"

  # The attacker has no `hosts`.
  def serve_tenants_by_name(attacker, victim, **settings)
    File.write(File.join(@place, "highball.toml"), "#{entry(attacker)}#{entry(victim)}hosts = ['#{HOSTS[VICTIM]}']\n")
    serve_as_root(@place, **settings)
  end

  # Root's server refuses this with the message; returns the output.
  def assert_refused(message, *arguments, command: "serve")
    output, ended = HighballServer.run(command, "-e", "production", *arguments, env: env, within: 60)
    assert_equal 2, ended.exitstatus, output
    assert_match(message, output)
    output
  end

  def assert_failed(server, message)
    wait_for("the failure", within: 30) { app_status(server, "attacker")["phase"] == "failed" }
    diagnosis = app_status(server, "attacker").fetch("diagnosis")
    assert_equal %w[invalid_configuration read_configuration], diagnosis.values_at("cause", "step")
    assert_match(message, diagnosis.dig("error", "message"))
    assert_match(/ERROR attacker: .*the application did not boot.*invalid_configuration/, server.log)
  end

  def assert_both_serve(server)
    assert_runs_as ATTACKER, facts(server, { "Host" => HOSTS[ATTACKER] })
    assert_victim_serves(server)
  end

  def app_status(server, name) = server_status(server)["apps"].find { |app| app["name"] == name }

  # A process of the attacker's that puts a file and a link to `target` there in turn.
  def swap_for_ever(app, target)
    user = Etc.getpwnam(ATTACKER)
    fork do
      Process::GID.change_privilege(user.gid)
      Process::UID.change_privilege(user.uid)
      path = File.join(app, FILE)
      loop do
        File.write("#{path}.own", "user = '#{ATTACKER}'\n")
        File.rename("#{path}.own", path)
        File.symlink(target, "#{path}.link")
        File.rename("#{path}.link", path)
      end
    end
  end
end
