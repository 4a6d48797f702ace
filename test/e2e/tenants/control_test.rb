# frozen_string_literal: true

require_relative "../../support/control_test_case"

# Control sockets, by which commands find a server and talk to it. Those of other users are not used, and root does not
# believe answers of a tenant's server.
class TenantControlTest < ControlTestCase
  # --- the usual places

  def test_a_folder_that_another_user_has_made_first_is_not_used
    forge("#{@usual}/1.sock") { |client, pid| client.puts(JSON.generate(STATUS.merge("pid" => pid))) }
    File.chmod(0o755, @usual)
    %w[status stop].each do |name|
      output, ended = command(VICTIM, name)
      refute_predicate ended, :success?
      assert_match(/#{@usual} belongs to #{ATTACKER}.*not used/, output)
      assert_match(/no Highball is running/, output)
    end
    assert_empty asked, "the forged server received no request"
    server = serve_as_victim(env: { "XDG_RUNTIME_DIR" => nil })
    wait_for("a word on it") { server.log.match?(/WARN .*in another place.*#{@usual} belongs to #{ATTACKER}/m) }
    assert_equal ["#{server.pid}.sock"], Dir.children(@further)
    assert_finds server, {}
  end

  def test_a_server_whose_places_are_all_taken_serves_without_a_control_socket
    taken = [@usual, @further]
    as_attacker { taken.each { |path| Dir.mkdir(path, 0o755) } }
    server = serve_as_victim
    belongs = taken.map { |path| "#{path} belongs to #{ATTACKER}.*" }.join
    wait_for("a word on it") { server.log.match?(/no control socket.*#{belongs}/m) }
    assert_equal 200, server.get("/").status
    output, ended = command(VICTIM, "status")
    refute_predicate ended, :success?
    assert_match(/#{@further} belongs to #{ATTACKER}.*not used/, output)
  end

  # As in a container that is read-only. `/dev/shm` is another file system.
  def test_a_server_that_can_write_no_files_has_its_socket_in_memory
    read_only = "for at in /tmp /var/tmp /run; do mount --bind $at $at; mount -o remount,bind,ro $at; done; exec"
    alone = ["unshare", "--mount", "--propagation", "private", "sh", "-euc"]
    skip "file systems cannot be mounted here" unless system(*alone, "#{read_only} true", %i[out err] => File::NULL)
    server = serve_as_victim(through: [*alone, "#{read_only} \"$@\"", "sh"])
    wait_for("the control socket") { File.socket?("#{@further}/#{server.pid}.sock") }
    assert_equal [0o700, Etc.getpwnam(VICTIM).uid], [File.stat(@further).mode & 0o7777, File.stat(@further).uid]
    refute_match(/WARN.*elsewhere/, server.log)
    assert_finds server, {}
    assert_finds server, {}, as: "root"
  end

  # A tenant can start processes until one has the process id that a server's PID file names still.
  def test_the_process_id_of_roots_former_server_is_a_tenants
    program = File.join(folder_of(ATTACKER, "programs"), "highball")
    File.symlink("/bin/sleep", program)
    pid = Process.spawn(*become(ATTACKER), program, "100")
    @forgers << pid
    wait_for("its name") { File.read("/proc/#{pid}/comm") == "highball\n" }
    path = File.join(@place, "server.pid")
    File.write(path, "#{pid}\n")
    app = victim_app
    server = serve_as_root(app, "--pidfile", path)
    assert_equal server.pid, File.read(path).to_i
    second = highball_fails("serve", "-p", "0", "--pidfile", path, app, env: root_env, within: 60)
    assert_match(/belongs to a Highball that runs \(pid #{server.pid}\)/, second)
    server.stop
    refute File.exist?(path)
  end

  def test_a_link_in_place_of_the_folder_is_not_followed
    elsewhere = folder_of(VICTIM, "elsewhere", 0o700)
    places = [@usual, @further]
    as_attacker { places.each { |place| File.symlink(elsewhere, place) } }
    output, = command(VICTIM, "status")
    assert_match(/#{@usual}.*(belongs to|symbolic)|Too many levels/, output)
    server = serve_as_victim(env: { "XDG_RUNTIME_DIR" => nil })
    wait_for("a word on it") { server.log.match?(/no control socket/) }
    assert_empty Dir.children(elsewhere)
  end

  def test_a_folder_that_is_open_to_others_is_not_used
    FileUtils.mkdir(@usual)
    FileUtils.chown(VICTIM, nil, @usual)
    File.chmod(0o777, @usual)
    output, ended = command(VICTIM, "status")
    refute_predicate ended, :success?
    assert_match(/#{@usual} belongs to #{VICTIM} \(mode 0777\)/, output)
  end

  def test_a_server_without_a_session_is_found_from_one_and_the_other_way_round
    session = folder_of(VICTIM, "session", 0o700)
    from_cron = serve_as_victim(env: { "XDG_RUNTIME_DIR" => nil })
    wait_for("the control socket") { File.socket?("#{@usual}/#{from_cron.pid}.sock") }
    assert_finds from_cron, { "XDG_RUNTIME_DIR" => session }
    assert_finds from_cron, { "XDG_RUNTIME_DIR" => nil }
    from_session = serve_as_victim("other", env: { "XDG_RUNTIME_DIR" => session })
    assert_finds from_session, { "XDG_RUNTIME_DIR" => session }
    assert_finds from_cron, { "XDG_RUNTIME_DIR" => session }
    output, ended = command(VICTIM, "stop", *from_cron.which, env: { "XDG_RUNTIME_DIR" => session })
    assert_predicate ended, :success?, output
    assert_predicate from_cron.wait, :success?
  end

  def test_a_socket_of_another_users_in_ones_own_folder_is_not_used
    FileUtils.mkdir(@usual, mode: 0o700)
    path = "#{@usual}/1.sock"
    forge(File.join(folder_of(ATTACKER, "forge"), "x")) { |client, _| client.puts("{}") }
    File.rename(File.join(@place, "forge/x"), path)
    FileUtils.chown(VICTIM, nil, @usual)
    output, = command(VICTIM, "status")
    assert_match(/1\.sock belongs to #{ATTACKER}, and is not used/, output)
    File.chown(Etc.getpwnam(VICTIM).uid, nil, path) # the file is the victim's, and the process is not
    output, = command(VICTIM, "status")
    assert_match(/a process of #{ATTACKER} listens on #{VICTIM}'s control socket/, output)
    assert_empty asked
  end

  def test_what_is_no_socket_in_ones_own_folder_is_not_waited_for
    FileUtils.mkdir(@usual, mode: 0o700)
    File.mkfifo("#{@usual}/1.sock")
    File.symlink("/dev/zero", "#{@usual}/2.sock")
    File.symlink("nowhere", "#{@usual}/3.sock")
    FileUtils.chown(VICTIM, nil, @usual)
    output, = command(VICTIM, "status")
    assert_match(/1\.sock is a FIFO/, output)
    assert_match(/2\.sock is a symbolic link/, output)
    assert_equal %w[1.sock 2.sock 3.sock], Dir.children(@usual).sort
  end

  # --- HIGHBALL_CONTROL

  def test_a_named_socket_is_for_server_and_commands
    control = File.join(folder_of(VICTIM, "named"), "control")
    server = serve_as_victim(env: { "HIGHBALL_CONTROL" => control })
    wait_for("the control socket") { File.socket?(control) }
    assert_equal [0o600, Etc.getpwnam(VICTIM).uid], [File.stat(control).mode & 0o777, File.stat(control).uid]
    named = { "HIGHBALL_CONTROL" => control }
    assert_finds server, named
    assert_finds server, named, as: "root"
    output, ended = command(VICTIM, "upgrade", env: named)
    assert_predicate ended, :success?, output
    assert_match(/a new process serves/, output)
    output, ended = command(VICTIM, "restart", env: named)
    assert_predicate ended, :success?, output
    output, ended = command(VICTIM, "stop", env: named)
    assert_predicate ended, :success?, output
    server.wait
    assert_empty Dir.children(File.dirname(control))
  end

  def test_a_named_folder_holds_the_sockets_of_several
    control = folder_of(VICTIM, "named")
    servers = %w[one two].map { |name| serve_as_victim(name, env: { "HIGHBALL_CONTROL" => control }) }
    servers.each { |server| assert_finds server, { "HIGHBALL_CONTROL" => control } }
    assert_equal servers.map { |server| "#{server.pid}.sock" }.sort, Dir.children(control).sort
  end

  def test_a_second_server_does_not_take_the_named_socket
    control = File.join(folder_of(VICTIM, "named"), "control")
    first = serve_as_victim(env: { "HIGHBALL_CONTROL" => control })
    assert_finds first, { "HIGHBALL_CONTROL" => control }
    second = serve_as_victim("second", env: { "HIGHBALL_CONTROL" => control })
    wait_for("a word on it") { second.log.include?("another Highball that runs") }
    assert_finds first, { "HIGHBALL_CONTROL" => control }
  end

  def test_a_place_where_others_may_write_is_not_used
    control = File.join(folder_of(VICTIM, "open", 0o777), "control")
    server = serve_as_victim(env: { "HIGHBALL_CONTROL" => control })
    wait_for("a word on it") { server.log.include?("others may write to") }
    assert_empty Dir.children(File.dirname(control))
    of_root = start_victim_as_root(env: { "HIGHBALL_CONTROL" => File.join(folder_of(ATTACKER, "theirs"), "control") })
    wait_for("a word on it", within: 60) { of_root.log.match?(/no control socket.*belongs to #{ATTACKER}/m) }
    assert_empty Dir.children(File.join(@place, "theirs"))
  end

  def test_what_is_no_socket_is_neither_replaced_nor_waited_for
    folder = folder_of(VICTIM, "named")
    File.write("#{folder}/file", "text")
    File.mkfifo("#{folder}/fifo")
    %w[file fifo].each do |name|
      server = serve_as_victim(name, env: { "HIGHBALL_CONTROL" => "#{folder}/#{name}" })
      wait_for("a word on it") { server.log.include?("is not a control socket of this user") }
      output, ended = command(VICTIM, "status", env: { "HIGHBALL_CONTROL" => "#{folder}/#{name}" })
      refute_predicate ended, :success?
      assert_match(/not a control socket|belongs to root/, output)
    end
    assert_equal "text", File.read("#{folder}/file")
  end

  def test_other_users_get_no_answer_even_from_a_socket_that_is_open
    control = File.join(folder_of(VICTIM, "named"), "control")
    server = serve_as_victim(env: { "HIGHBALL_CONTROL" => control })
    wait_for("the control socket") { File.socket?(control) }
    File.chmod(0o666, control)
    as_attacker do
      answer = UNIXSocket.open(control) { |socket| socket.puts(JSON.generate("command" => "stop")) || socket.read }
      raise "answered: #{answer}" unless answer.empty?
    rescue Errno::ECONNRESET, Errno::EPIPE
      nil # without an answer
    end
    wait_for("a word on it") { server.log.match?(/a process of #{ATTACKER} has asked/) }
    output, = command(VICTIM, "status", env: { "HIGHBALL_CONTROL" => control })
    assert_match(/open to other users/, output)
    assert_predicate server, :running?
  end

  # --- answers of a tenant's server to root

  def test_an_answer_without_an_end_is_given_up
    path = forge_tenants { |client, _| loop { client.write("a" * 65_536) } }
    assert_not_believed path, /too long/
  end

  def test_an_answer_that_drips_is_given_up
    path = forge_tenants do |client, _|
      loop do
        client.write("a")
        client.wait_readable(0.1)
      end
    end
    assert_not_believed path, /does not answer|timed out|elapsed/i
  end

  def test_answers_that_are_none_are_errors
    deep = "#{'[' * 100_000}\n"
    garbage = [deep, "\xFF\xFE\n", "{}\n", "null\n", "\n", "{\"type\":\"status\"}\n", ""]
    garbage.each_with_index do |answer, index|
      path = forge_tenants("garbage-#{index}") { |client, _| client.write(answer) }
      output, ended = command("root", "status", env: { "HIGHBALL_CONTROL" => path })
      refute_predicate ended, :success?, output
      refute_match(/panicked/, output)
    end
  end

  def test_a_forged_pid_is_not_believed
    other = Process.pid
    path = forge_tenants { |client, _| client.puts(JSON.generate(STATUS.merge("pid" => other))) }
    assert_not_believed path, /says that its pid is #{other}, but it is/
  end

  def test_no_control_characters_are_printed
    path = forge_tenants do |client, pid|
      app = APP.merge("name" => "\e]0;title\a\nhighball (pid 1) has stopped", "phase" => "serving\r\e[2J",
                      "url" => "\u009b31m", "app" => "/\u202e", "environment" => "\b", "user" => "\x7f",
                      "last_failure" => "one\n\e[31mtwo\r")
      client.puts(JSON.generate(STATUS.merge("pid" => pid, "version" => "\e[1m", "apps" => [app, app])))
    end
    [%w[status], %w[status --json], %w[memory], %w[restart]].each do |words|
      output, = command("root", *words, env: { "HIGHBALL_CONTROL" => path })
      refute_match(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/, output, words.join(" "))
      refute_match(/^highball \(pid 1\)/, output)
      assert_match(/\\x1b/, output, words.join(" "))
    end
  end

  def test_a_drain_time_without_an_end_breaks_nothing
    path = forge_tenants do |client, pid|
      if client.gets.include?("stop")
        client.puts(JSON.generate("type" => "stopping", "pid" => 1, "drain_seconds" => (2**64) - 1))
        client.close
        exit!(0)
      end
      client.puts(JSON.generate(STATUS.merge("pid" => pid)))
    end
    output, ended = command("root", "stop", env: { "HIGHBALL_CONTROL" => path })
    assert_predicate ended, :success?, output
  end

  def test_a_tenant_does_not_lead_root_to_another_server
    control = folder_of("root", "roots", 0o700)
    server = start_victim_as_root(env: { "HIGHBALL_CONTROL" => "#{control}/x" })
    wait_for("the control socket", within: 60) { File.socket?("#{control}/x") }
    theirs = folder_of(ATTACKER, "theirs")
    as_attacker do
      File.symlink("#{control}/x", "#{theirs}/x")
      File.symlink(control, "#{theirs}/folder")
    end
    %w[x folder/x folder].each do |name|
      output, ended = command("root", "stop", env: { "HIGHBALL_CONTROL" => "#{theirs}/#{name}" })
      refute_predicate ended, :success?, output
      assert_match(/symbolic link|another user's|another's/, output)
    end
    assert_predicate server, :running?
  end
end
