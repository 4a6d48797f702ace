# frozen_string_literal: true

require_relative "users_test_case"

# A test in which one tenant of a server that root started attacks the others: the attacker's application belongs to
# one user, the victim's to another, and a file that only root may read lies beside them.
class TenantsTestCase < UsersTestCase
  ATTACKER = "games"
  VICTIM = "daemon"
  HOSTS = { ATTACKER => "t1.test", VICTIM => "t2.test" }.freeze
  SECRET = "only root may read this"

  def setup
    super
    @root_file = File.join(@place, "of-root")
    File.write(@root_file, SECRET, perm: 0o600)
  end

  private

  def attacker_app(files = {}) = app_of(ATTACKER, { "config.ru" => FACTS }.merge(files), "attacker")

  # Other users cannot enter this one.
  def victim_app(files = {})
    app_of(VICTIM, { "config.ru" => FACTS }.merge(files), "victim").tap { |folder| File.chmod(0o750, folder) }
  end

  # Serves both, by a configuration file of root's: the attacker as t1.test, the victim as t2.test.
  # `entries` holds more lines for the entry of one of them.
  def serve_tenants(attacker = attacker_app, victim = victim_app, entries: {}, top: "", **settings)
    configure_tenants(attacker, victim, entries: entries, top: top)
    serve_as_root(@place, **settings)
  end

  def configure_tenants(attacker, victim, entries: {}, top: "")
    lines = { ATTACKER => attacker, VICTIM => victim }.map do |user, folder|
      "[[app]]\npath = '#{folder}'\nhosts = ['#{HOSTS.fetch(user)}']\n#{entries.fetch(user, '')}\n"
    end
    File.write(File.join(@place, "highball.toml"), "#{top}\n#{lines.join}")
  end

  # Asks the attacker's application, or the victim's.
  def ask_attacker(server, target = "/", headers = {}, **options)
    server.get(target, { "Host" => HOSTS[ATTACKER] }.merge(headers), **options)
  end

  def ask_victim(server, target = "/", headers = {}) = server.get(target, { "Host" => HOSTS[VICTIM] }.merge(headers))

  # The victim's application still answers, as the victim.
  def assert_victim_serves(server)
    assert_runs_as VICTIM, facts(server, { "Host" => HOSTS[VICTIM] })
  end

  # The file that only root may write is as it was.
  def assert_root_file_untouched
    assert_equal SECRET, File.read(@root_file)
    found = File.stat(@root_file)
    assert_equal [0, 0, 0o600], [found.uid, found.gid, found.mode & 0o777]
  end

  # Runs the block in a process of the attacker's, with its rights alone.
  def as_attacker(&) = as_user(ATTACKER, &)

  # Runs the block in a process with this user's rights alone; the test fails if it raises.
  def as_user(name)
    user = Etc.getpwnam(name)
    pid = fork do
      Process.initgroups(name, user.gid)
      Process::GID.change_privilege(user.gid)
      Process::UID.change_privilege(user.uid)
      yield
      exit!(0) # without the exit handlers of the test's process
    rescue StandardError => e
      warn "as #{name}: #{e.class}: #{e.message}"
      exit!(1)
    end
    _, ended = Process.wait2(pid)
    assert_predicate ended, :success?, "what #{name} tried failed in itself"
  end
end
