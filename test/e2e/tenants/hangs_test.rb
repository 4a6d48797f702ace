# frozen_string_literal: true

# marks: long

require_relative "../../support/tenants_test_case"
require_relative "../../support/unanswered_files"

# Files that block the process that opens or reads them, or that have no end. The attacker's files may hold up the
# attacker's application, and nothing else.
class TenantHangsTest < TenantsTestCase
  include UnansweredFiles

  # Long enough for a machine under load, and shorter than the kernel lets a process hold a lease (45 s).
  PROMPTLY = 20
  READ_FOR_A_DIAGNOSIS = %w[source.rb log/production.log .env config/database.yml config/master.key].freeze
  # Takes write leases on these files, and keeps them. Without the trap, the kernel's request to give one back would end
  # the process.
  LEASING = <<~'RUBY'
    SETLEASE = 1024
    trap("IO") {}
    LEASED = %s.map do |path|
      File.open(path, "r+").tap { |file| file.fcntl(SETLEASE, Fcntl::F_WRLCK) }
    end
  RUBY

  def test_a_named_pipe_as_version_file_when_a_restart_is_asked_for
    hang_while_restarting(".ruby-version" => :pipe)
  end

  def test_a_named_pipe_as_any_other_version_file
    hang_while_restarting(".tool-versions" => :pipe, "mise.toml" => :pipe, ".mise.toml" => :pipe)
  end

  def test_a_device_without_an_end_as_version_file
    hang_while_restarting(".ruby-version" => "/dev/zero", ".tool-versions" => "/dev/zero") do |server, before|
      assert_operator server.memory_bytes - before, :<, 256 << 20
    end
  end

  def test_a_huge_version_file
    hang_while_restarting(".ruby-version" => :huge, ".tool-versions" => :huge)
  end

  def test_a_leased_version_file
    attacker = leasing(".ruby-version", ".tool-versions")
    with_tenants(attacker) do |server|
      ask_for_restart(attacker)
      # The restart goes on without the file; the new version then waits for the lease of the old one.
      wait_for("the boot", within: PROMPTLY) { server.log.include?("a process holds a lease on it") }
      assert_nothing_else_is_held_up(server)
    end
  end

  # What is read with a request, or when the configuration is read again.
  def test_leased_files_of_its_configuration
    own = { "config/highball.toml" => "basic_auth = 'config/htpasswd'\n" }
    with_tenants(leasing("config/htpasswd", "Gemfile.lock", "tmp/restart.txt", files: own)) do |server|
      assert_equal 500, ask_attacker(server, "/", { "Authorization" => "Basic eDp5" }, within: PROMPTLY).status
      server.signal("HUP")
      wait_for("the look at it", within: PROMPTLY) { server.log.match?(/highball\.toml: .*holds a lease on it/) }
      assert_nothing_else_is_held_up(server)
    end
  end

  def test_named_pipes_as_restart_files
    attacker = attacker_app
    FileUtils.mkdir_p(File.join(attacker, "tmp"))
    with_tenants(attacker) do |server|
      %w[restart.txt always_restart.txt].each { |name| place(attacker, "tmp/#{name}", :pipe) }
      wait_for("the restart", within: PROMPTLY) { server.log.include?("restarting") }
      assert_nothing_else_is_held_up(server)
    end
  end

  def test_restart_files_that_lead_into_the_kernel
    attacker = attacker_app
    FileUtils.mkdir_p(File.join(attacker, "tmp"))
    with_tenants(attacker) do |server|
      place(attacker, "tmp/restart.txt", "/proc/self/fd/0")
      place(attacker, "tmp/always_restart.txt", "/proc/uptime")
      assert_nothing_else_is_held_up(server)
      refute_includes server.log, "restarting"
    end
  end

  # The front reads the page; others' requests come over the same thread.
  def test_a_leased_error_page_and_static_file
    attacker = leasing("public/500.html", "public/file.txt", more: "run ->(_env) { raise 'alas' }\n")
    with_tenants(attacker) do |server|
      %w[/ /file.txt / /file.txt].each do |path|
        answer = ask_attacker(server, path, within: PROMPTLY)
        assert_equal 500, answer.status, path
        refute_includes answer.body, "leased"
        assert_victim_serves(server)
      end
      assert_nothing_else_is_held_up(server)
    end
  end

  def test_a_named_pipe_as_error_page_and_static_file
    attacker = attacker_app("config.ru" => "run ->(_env) { raise 'alas' }\n", "public/own.txt" => "own")
    %w[500.html file.txt file.txt.gz file.html index.html].each { |name| place(attacker, "public/#{name}", :pipe) }
    with_tenants(attacker) do |server|
      %w[/ /file.txt /file].each do |path|
        assert_equal 500, ask_attacker(server, path, within: PROMPTLY).status, path
      end
      assert_nothing_else_is_held_up(server)
    end
  end

  # A diagnosis reads the sources, the log, and files that may hold secrets.
  def test_a_version_that_does_not_boot_with_pipes_wherever_a_diagnosis_looks
    attacker = attacker_app
    with_tenants(attacker) do |server|
      READ_FOR_A_DIAGNOSIS.each { |name| place(attacker, name, :pipe) }
      fail_to_restart(server, attacker, File.join(attacker, "source.rb"))
    end
  end

  def test_a_version_that_does_not_boot_with_devices_wherever_a_diagnosis_looks
    attacker = attacker_app
    with_tenants(attacker) do |server|
      READ_FOR_A_DIAGNOSIS.each { |name| place(attacker, name, "/dev/zero") }
      fail_to_restart(server, attacker, File.join(attacker, "source.rb"))
    end
  end

  def test_a_version_that_does_not_boot_with_leases_wherever_a_diagnosis_looks
    attacker = leasing(*READ_FOR_A_DIAGNOSIS)
    with_tenants(attacker) { |server| fail_to_restart(server, attacker, File.join(attacker, "source.rb")) }
  end

  # Its folder is replaced by something else.
  def test_a_folder_that_becomes_something_else
    { "a named pipe" => :pipe, "a link into a process" => "/proc/self/cwd", "a device" => "/dev/zero",
      "a link to root's" => "/root", "nothing" => nil }.each do |what, made|
      attacker = attacker_app
      with_tenants(attacker) do |server|
        File.rename(attacker, "#{attacker}.old")
        place(File.dirname(attacker), File.basename(attacker), made) if made
        output, = restart(server)
        assert_match(/failed/, output, what)
        assert_equal 200, ask_attacker(server).status, "the previous version still serves"
        assert_nothing_else_is_held_up(server)
      end
      FileUtils.rm_rf([attacker, "#{attacker}.old"])
    end
  end

  # The folder of an application that does not boot is walked from time to time.
  def test_the_folder_of_a_failed_application
    attacker = attacker_app("config.ru" => "raise 'alas'\n")
    %w[a.rb .ruby-version Gemfile.lock].each { |name| place(attacker, name, :pipe) }
    place(attacker, "circle", attacker)
    place(attacker, "process", "/proc/self/root")
    deep = File.join(attacker, *(["d" * 200] * 15))
    FileUtils.mkdir_p(deep)
    with_tenants(attacker, waits_for: "the application did not boot") do |server|
      File.write(File.join(attacker, "config.ru"), FACTS)
      wait_for("another try", within: 60) { ask_attacker(server).status == 200 }
      assert_nothing_else_is_held_up(server)
    end
  end

  # A file system that does not answer: opening a file never ends. The boot fails at its time limit.
  def test_a_file_system_that_does_not_answer_when_a_restart_is_asked_for
    attacker = attacker_app(".ruby-version" => "3.1\n")
    with_tenants(attacker, options: "boot_timeout = '2s'") do |server|
      without_answer(File.join(attacker, ".ruby-version")) do
        ask_for_restart(attacker)
        wait_for("the restart", within: PROMPTLY) { server.log.include?("restarting") }
        assert_nothing_else_is_held_up(server)
        wait_for("its end", within: PROMPTLY) { server.log.include?("its files could not be looked at within 2 s") }
        assert_equal 200, ask_attacker(server).status, "the previous version still serves"
        assert_nothing_else_is_held_up(server)
        server.stop("TERM", within: PROMPTLY)
      end
    end
  end

  # The diagnosis comes without the content of the files.
  def test_a_file_system_that_does_not_answer_when_a_boot_has_failed
    attacker = attacker_app("config.ru" => "raise 'alas'\n", "config/master.key" => "0123456789abcdef")
    without_answer(File.join(attacker, "config/master.key")) do
      with_tenants(attacker) do |server|
        wait_for("the diagnosis", within: PROMPTLY) { server.log.include?("RuntimeError: alas") }
        assert_includes server.log, "the file system does not answer"
        assert_equal 503, ask_attacker(server).status
        assert_nothing_else_is_held_up(server)
      end
    end
  end

  # Its own configuration file is read when the server reads its own again.
  def test_a_configuration_file_that_is_none
    { :pipe => "a named pipe", "/dev/zero" => "a device", :huge => "bytes" }.each do |made, named|
      attacker = attacker_app("config/own" => "")
      with_tenants(attacker) do |server|
        place(attacker, "config/highball.toml", made)
        server.signal("HUP")
        wait_for("what is wrong with the file", within: PROMPTLY) { server.log.include?(named) }
        assert_equal 200, ask_attacker(server).status, "it goes on as it was"
        assert_nothing_else_is_held_up(server)
      end
      FileUtils.rm_rf(attacker)
    end
  end

  # Very many files, and a change in one of them.
  def test_many_files_that_are_watched_in_production
    attacker = attacker_app("tmp/always_restart.txt" => "")
    folder = File.join(attacker, "many")
    Dir.mkdir(folder)
    19_000.times { |number| File.write(File.join(folder, "#{number}.rb"), "") }
    FileUtils.chown(ATTACKER, nil, folder)
    with_tenants(attacker) do |server|
      wait_for("a look at the files before the change", within: PROMPTLY) { generation(server) }
      File.write(File.join(attacker, "config.ru"), "# changed\n#{FACTS}")
      assert_nothing_else_is_held_up(server)
    end
  end

  private

  # Restarts the application with these in its folder. The restart succeeds and ignores such a version file.
  def hang_while_restarting(files)
    attacker = attacker_app
    with_tenants(attacker) do |server|
      before = server.memory_bytes
      files.each { |name, made| place(attacker, name, made) }
      ask_for_restart(attacker)
      wait_for("the restart", within: PROMPTLY) { generation(server) == 2 }
      yield server, before if block_given?
      assert_nothing_else_is_held_up(server)
    end
  end

  # Leaves the application of the attacker in a state in which it does not boot, and has it restarted.
  def fail_to_restart(server, attacker, source)
    File.write(File.join(attacker, "config.ru"), "raise SyntaxError, '#{source}:1: alas'\n")
    output, = restart(server)
    assert_match(/alas/, output)
    assert_equal 200, ask_attacker(server).status, "the previous version still serves"
    assert_nothing_else_is_held_up(server)
  end

  def with_tenants(attacker, waits_for: nil, options: "")
    server = serve_tenants(attacker, victim_app, entries: { ATTACKER => options })
    wait_for("the log", within: PROMPTLY) { server.log.include?(waits_for) } if waits_for
    yield server
    server.stop("TERM", within: PROMPTLY) if server.running? # in its usual time
    FileUtils.rm_rf(File.join(@place, "victim"))
  end

  # Puts something else in the place of a file.
  def place(folder, name, what)
    path = File.join(folder, name)
    FileUtils.mkdir_p(File.dirname(path))
    FileUtils.rm_rf(path)
    case what
    when :pipe then File.mkfifo(path)
    when :huge then File.open(path, "w") { |file| file.truncate(1 << 42) }
    else File.symlink(what, path)
    end
    File.chmod(0o666, path) unless File.symlink?(path)
  end

  # An application that holds leases on these of its files.
  def leasing(*names, more: FACTS, files: {})
    files = names.to_h { |name| [name, "leased"] }.merge(files)
    code = format(LEASING, files.keys.inspect)
    attacker = attacker_app({ "config.ru" => "require 'fcntl'\n#{code}#{more}" }.merge(files))
    skip "this file system has no leases" unless leases?(attacker)
    attacker
  end

  def leases?(folder)
    File.open(File.join(folder, "lease"), "w") { |file| file.fcntl(1024, 1) }
    true
  rescue SystemCallError
    false
  end

  def ask_for_restart(attacker)
    FileUtils.mkdir_p(File.join(attacker, "tmp"))
    FileUtils.touch(File.join(attacker, "tmp/restart.txt"))
  end

  def restart(server)
    HighballServer.run("restart", "attacker", *server.which, env: server_env, within: 60)
  end

  def generation(server)
    server_status(server, within: PROMPTLY)["apps"].find { |app| app["name"] == "attacker" }["generation"]
  end

  # The victim's application serves, its killed worker is replaced, and the server reports its status.
  def assert_nothing_else_is_held_up(server)
    assert_victim_serves(server)
    killed = facts(server, { "Host" => HOSTS[VICTIM] })["pid"]
    HighballServer.kill(killed)
    wait_for("another worker of the victim's", within: PROMPTLY) do
      answer = ask_victim(server)
      answer.status == 200 && JSON.parse(answer.body)["pid"] != killed
    end
    refute File.exist?("/proc/#{killed}"), "it was reaped"
    apps = server_status(server, within: PROMPTLY)["apps"]
    assert_equal(%w[attacker victim], apps.map { |app| app["name"] }.sort)
  end
end
