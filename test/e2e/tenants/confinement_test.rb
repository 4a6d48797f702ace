# frozen_string_literal: true

require_relative "../../support/spawner_test_case"
require_relative "../../support/taken_over_process"

# What the kernel denies a server that root has started. The tests make the system calls that an attacker would make
# after taking it over.
class ConfinementTest < SpawnerTestCase
  CLONE_VM = 0x100
  CLONE_NEWUSER = 0x10000000
  CREATE = File::WRONLY | File::CREAT

  def test_every_thread_is_confined
    server = serve_tenants(attacker_app("public/own.txt" => "own"))
    ask_attacker(server, "/own.txt")
    threads = Dir.children("/proc/#{front_of(server)}/task")
    assert_operator threads.length, :>, 1
    facts = threads.map { |thread| status_of("#{front_of(server)}/task/#{thread}") }.reject(&:empty?)
    assert_equal [%w[1 2]], facts.map { |fact| fact.values_at("NoNewPrivs", "Seccomp") }.uniq
    assert_includes server.log, landlock? ? "seccomp and Landlock confine the server" : "seccomp confines the server"
  end

  def test_only_the_server_is_confined
    server = serve_tenants(attacker_app("public/own.txt" => "own"))
    ask_attacker(server, "/own.txt")
    others = ProcessFacts.tree(server.pid) - [front_of(server)]
    assert_equal ["0"], others.map { |pid| status_of(pid)["Seccomp"] }.uniq
  end

  def test_a_server_that_stays_root_is_not_confined
    server = serve_tenants(top: "server_user = 'root'", env: UNCHOSEN)
    assert_equal "0", status_of(server.pid)["Seccomp"]
    refute_match(/confine/, server.log)
  end

  def test_it_starts_no_processes
    denied("execve" => [:execve, "/bin/true", 0, 0], "execveat" => [:execveat, -100, "/bin/true", 0, 0, 0],
           "fork" => [:fork], "vfork" => [:vfork], "clone" => [:clone, 17, 0, 0, 0, 0],
           "clone with shared memory" => [:clone, CLONE_VM | 17, 0, 0, 0, 0],
           "code that was not there" => [:mmap, 0, 4096, 7, 0x22, -1, 0])
    taken_over { |process| assert_equal Errno::ENOSYS, process.call(:clone3, "\0" * 88, 88) }
  end

  def test_it_does_not_reach_other_processes
    bystander = as_server_user("sleep", "1000")
    denied("a signal" => [:kill, bystander, 15], "a signal to a thread" => [:tgkill, bystander, bystander, 15],
           "a signal by pidfd" => [:pidfd_send_signal, 0, 15, 0, 0], "a signal to all" => [:kill, -1, 15],
           "ptrace" => [:ptrace, 16, bystander, 0, 0], "memory" => [:process_vm_readv, bystander, 0, 0, 0, 0, 0],
           "descriptors" => [:pidfd_getfd, 0, 0, 0], "limits" => [:prlimit64, bystander, 7, 0, 0])
    taken_over { |process| assert_equal 0, process.call(:kill, process.pid, 0) }
    assert_nil Process.waitpid(bystander, Process::WNOHANG)
  ensure
    HighballServer.kill(bystander) if bystander
    Process.wait(bystander) if bystander
  end

  def test_it_makes_no_sockets
    families = { "unix" => 1, "IPv4" => 2, "IPv6" => 10, "netlink" => 16, "packets" => 17, "alg" => 38, "vsock" => 40 }
    denied(families.transform_values { |family| [:socket, family, 2, 0] })
    denied("a pair that sends to any address" => [:socketpair, 1, 2, 0, "\0" * 8],
           "a pair of another family" => [:socketpair, 2, 1, 0, "\0" * 8])
    taken_over { |process| assert_equal 0, process.call(:socketpair, 1, 1 | 0o2000000, 0, "\0" * 8) }
  end

  # A listening socket that is disconnected could connect to others.
  def test_its_sockets_do_not_become_others
    server = serve_tenants
    listening = listening_socket(front_of(server))
    denied({ "connect" => [:connect, listening, "\0" * 16, 16], "listen" => [:listen, listening, 1],
             "shutdown" => [:shutdown, listening, 2] }, server)
    assert_victim_serves(server)
  end

  def test_it_does_not_reach_parts_of_the_kernel
    denied("user namespaces" => [:unshare, CLONE_NEWUSER], "mount" => [:mount, 0, 0, 0, 0, 0],
           "mounts" => [:fsopen, "tmpfs", 0], "trees" => [:open_tree, -100, "/", 0], "chroot" => [:chroot, "/"],
           "bpf" => [:bpf, 0, 0, 0], "perf" => [:perf_event_open, 0, 0, 0, 0, 0], "userfaultfd" => [:userfaultfd, 1],
           "io_uring" => [:io_uring_setup, 1, "\0" * 120], "keys" => [:keyctl, 0, -3, 1],
           "modules" => [:finit_module, 0, 0, 0], "setuid" => [:setuid, 65_534],
           "personality" => [:personality, 0x400000],
           "typing into a terminal" => [:ioctl, 2, 0x5412, "x"], "taking a terminal" => [:ioctl, 2, 0x540e, 0])
    taken_over { |process| assert_equal Errno::ENOSYS, process.call(463, 0, 0, 0) }
  end

  # Not even files that all users may read: files of applications come from openers.
  def test_it_opens_no_files
    open_path = File.join(@place, "open_file")
    server = serve_tenants(top: "spool_dir = '#{spool}'")
    File.write(open_path, "all users may write here", perm: 0o666)
    File.chmod(0o777, @place)
    skip_without_landlock
    taken_over(server) do |process|
      ["/etc/passwd", open_path, "/", "/dev/null", "/bin/true"].each do |path|
        assert_equal Errno::EACCES, opened(process, path, File::RDONLY), path
      end
      [open_path, File.join(@place, "new"), "/tmp/highball-new", "/proc/self/comm"].each do |path|
        assert_equal Errno::EACCES, opened(process, path, CREATE), path
      end
      assert_equal true, opened(process, "/proc/self/status", File::RDONLY)
      assert_equal true, opened(process, spool, File::RDWR | File::TMPFILE)
    end
  end

  # Not even into a process that every process of the same user may look into.
  def test_it_does_not_look_into_processes_of_its_user
    bystander = as_server_user("sleep", "1000")
    server = serve_tenants
    skip_without_landlock
    taken_over(server) do |process|
      %w[environ mem maps].each do |name|
        assert_equal Errno::EACCES, opened(process, "/proc/#{bystander}/#{name}", File::RDONLY), name
      end
    end
  ensure
    HighballServer.kill(bystander) if bystander
    Process.wait(bystander) if bystander
  end

  def test_an_application_may_do_without_more_rights
    own = { "config/highball.toml" => "no_new_privs = true\n" }
    ["", "server_user = 'root'"].each do |top|
      server = serve_tenants(attacker_app(own), victim_app, top: top, env: UNCHOSEN)
      { "1" => ask_attacker(server), "0" => ask_victim(server) }.each do |expected, answer|
        assert_equal expected, status_of(JSON.parse(answer.body)["pid"])["NoNewPrivs"], top
      end
      server.stop
    end
  end

  private

  def spool = File.join(@place, "spool").tap { |folder| FileUtils.mkdir_p(folder) && File.chmod(0o1777, folder) }

  # Each of these calls fails with EPERM; and afterwards the server serves.
  def denied(calls, server = nil)
    server ||= @server_taken_over ||= serve_tenants
    taken_over(server) do |process|
      calls.each { |what, call| assert_equal Errno::EPERM, process.call(*call), what }
    end
    assert_victim_serves(server)
  end

  def taken_over(server = @server_taken_over, &)
    TakenOverProcess.take(front_of(server), &)
  rescue TakenOverProcess::NotPossible => e
    skip e.message
  end

  # Whether it could be opened; or the error.
  def opened(process, path, flags)
    found = process.call(:open, path, flags | 0o2000000, 0o600)
    return found unless found.is_a?(Integer)

    process.call(:close, found)
    true
  end

  # landlock_create_ruleset(2) returns its version, if the kernel has it and it is not switched off.
  def landlock?
    syscall(444, 0, 0, 1).positive?
  rescue SystemCallError
    false
  end

  def skip_without_landlock
    skip "this kernel has no Landlock" unless landlock?
  end

  def as_server_user(*command)
    Process.spawn("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command)
  end

  def listening_socket(pid)
    sockets = File.readlines("/proc/#{pid}/net/tcp").map(&:split)
    inodes = sockets.select { |socket| socket[3] == "0A" }.map { |socket| socket[9] } # proc_pid_net(5): it listens
    Dir.children("/proc/#{pid}/fd").map(&:to_i).find do |fd|
      inodes.include?(File.readlink("/proc/#{pid}/fd/#{fd}")[/socket:\[(\d+)\]/, 1])
    end
  end
end
