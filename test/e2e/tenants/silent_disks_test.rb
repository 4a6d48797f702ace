# frozen_string_literal: true

require_relative "../../support/fuse_folder"
require_relative "../../support/tenants_test_case"

# A tenant's link leads to a file system that does not answer, when root starts the server, has it read its
# configuration again, or has another process take over. Nothing of others is held up by it.
class TenantSilentDisksTest < TenantsTestCase
  SILENT = "home/attacker: the file system does not answer"

  def test_root_reads_its_configuration_again
    server = serve_tenants(@link, victim_app)
    fall_silent
    server.signal("HUP")
    wait_for("the configuration without it", within: 60) { server.log.include?("cannot reload the application's") }
    assert_includes server.log, SILENT
    assert_equal 200, ask_attacker(server).status
    highball("restart", "victim", *server.which, env: server_env, within: 60)
    assert_goes_on(server)
  end

  def test_a_start
    fall_silent
    server = serve_tenants(@link, victim_app)
    assert_predicate @disk.unanswered, :positive?
    attacker = server.status.fetch("apps").find { |app| app["name"] == "attacker" }
    assert_equal "failed", attacker["phase"]
    assert_includes attacker["last_failure"], SILENT
    refute_match(/WARN .*root/, server.log)
    assert_goes_on(server)
  end

  # It answers when root looks whether the application is there, and then no more.
  def test_a_disk_that_falls_silent_during_the_start
    fall_silent(after: 1)
    assert_goes_on(serve_tenants(@link, victim_app))
  end

  def test_a_hot_restart_says_why_it_fails
    server = serve_tenants(@link, victim_app)
    fall_silent
    output = highball_fails("upgrade", *server.which, env: server_env, within: 60)
    assert_includes output, SILENT
    assert_goes_on(server)
  end

  # Each look would leave a process behind that waits: so there is no other one until that has ended.
  def test_processes_that_wait_are_few_and_a_disk_that_answers_again_is_served
    others = %w[second third].map { |name| File.join(@home, name) }
    others.each { |link| link_to_release(link) }
    links = [@link, *others]
    fall_silent(*links)
    server = serve_several(*links)
    waiting = waiting_processes(server)
    3.times do |number|
      server.signal("HUP")
      wait_for("a reload", within: 60) { server.log.scan("the file system does not answer").size >= 3 * (number + 2) }
    end
    assert_operator waiting_processes(server).size, :<=, waiting.size + 1
    links.each { |link| as_attacker { File.unlink(link) && File.symlink(@release, link) } }
    @disk.answer
    wait_for("the end of the waiting processes") { waiting_processes(server).empty? }
    read_again_until(server) { links.all? { |link| ask(server, link).status == 200 } }
    assert_goes_on(server)
  end

  def setup
    super
    @mounted = File.join(@place, "disk").tap { |path| Dir.mkdir(path) }
    @disk = FuseFolder.new(@mounted, { "file" => "" })
    @home = File.join(@place, "home").tap { |path| Dir.mkdir(path) }
    FileUtils.chown(ATTACKER, nil, @home)
    @release = app_of(ATTACKER, { "config.ru" => FACTS }, "home/release")
    @link = File.join(@home, "attacker")
    link_to_release(@link)
  rescue FuseFolder::Unavailable => e
    skip "no file systems for tests: #{e.message}"
  end

  def teardown
    @disk&.close
    super
  end

  private

  # The server may notice a moment later that these processes have ended, and refuses to read until then.
  def read_again_until(server, &)
    wait_for("the applications to be served again") do
      server.signal("HUP")
      Deadline.wait("an answer", within: 2, &)
    rescue Deadline::Missed
      nil
    end
  end

  # From now on these links lead to the disk, which does not answer.
  def fall_silent(*links, after: 0)
    @disk.ignore(:lookup, after: after)
    links = [@link] if links.empty?
    links.each { |link| as_attacker { File.unlink(link) && File.symlink(File.join(@mounted, "release"), link) } }
  end

  def link_to_release(link) = as_attacker { File.symlink(@release, link) }

  # Each at the host `NAME.test`, with the victim's.
  def serve_several(*links)
    entries = links.map { |link| "[[app]]\npath = '#{link}'\nhosts = ['#{File.basename(link)}.test']\n" }
    entries << "[[app]]\npath = '#{victim_app}'\nhosts = ['#{HOSTS[VICTIM]}']\n"
    File.write(File.join(@place, "highball.toml"), entries.join)
    serve_as_root(@place)
  end

  def ask(server, link) = server.get("/", { "Host" => "#{File.basename(link)}.test" })

  # Processes of this server that read something as root.
  def waiting_processes(server)
    ProcessFacts.tree(server.pid).select do |pid|
      ProcessFacts.command_line(pid).match?(/\Ahighball: (configuration|table)/)
    end
  end

  def assert_goes_on(server)
    assert_victim_serves(server)
    assert_predicate server.stop("TERM", within: 20), :success?
  end
end
