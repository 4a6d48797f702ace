# frozen_string_literal: true

require "etc"
require_relative "../../support/memory_report"

# `highball memory` finds the processes of other Ruby servers.
class MemoryOfOthersTest < MemoryReportTest
  def test_a_puma_is_found_with_its_workers
    with_puma do |pid, workers|
      puma = settled(pid)
      assert_equal ["Puma", Etc.getpwuid.name], puma.values_at("server", "user")
      assert_equal %w[master worker worker], roles(puma["processes"])
      assert_equal [pid, *workers.sort], pids(puma["processes"])
      assert_total_is_sum(puma)
      text = highball("memory")
      assert_match(/^Puma \(pid #{pid}\), user \w+: puma/, text)
    end
  end

  def test_a_thin_is_found_by_its_command
    skip "needs thin" unless installed?("thin")
    with_server("thin", "start", "-a", "127.0.0.1", "-p", "0") do |pid|
      # It does not set a process title; its command is `ruby` at first.
      thin = wait_for("it in the list", within: 30) { others.find { |server| server["pid"] == pid } }
      assert_equal "Thin", thin["server"]
      assert_equal ["server"], roles(thin["processes"])
      assert_equal [pid], pids(thin["processes"])
    end
  end

  def test_what_may_not_be_read_is_named
    skip "needs root, to become another user" unless Process.uid.zero?
    with_puma do |pid|
      puma = JSON.parse(as_nobody).fetch("others").find { |server| server["pid"] == pid }
      assert_equal "root", puma["user"]
      assert_nil puma["processes"].first["memory"]
      assert_match(/belongs to root/, puma["processes"].first["memory_missing"])
      assert_equal [3, 3], puma["total"].values_at("processes", "unreadable_processes")
    end
  end

  def test_a_running_highball_is_none_of_them
    server = serve("heaps")
    own = pids(memory(server)["processes"])
    found = others.flat_map { |other| pids(other["processes"]) }
    assert_empty own & found
  end

  private

  # The report on a server, once it agrees with the kernel: while workers start, their memory grows in between.
  def settled(pid)
    wait_for("figures of pid #{pid} that agree with smaps_rollup", within: 30) do
      server = others.find { |one| one["pid"] == pid }
      server["processes"].each { |process| assert_agrees_with_rollup(process) }
      server
    rescue Minitest::Assertion
      nil
    end
  end

  # Yields the pids of a Puma and of its two workers.
  def with_puma
    skip "needs puma" unless installed?("puma")
    with_server("puma", "-b", "tcp://127.0.0.1:0", "-w", "2", "-t", "1:1") do |pid|
      workers = nil
      wait_for("two workers with titles", within: 30) do
        workers = ProcessFacts.tree(pid) - [pid]
        workers.length == 2 && [pid, *workers].all? { |one| File.read("/proc/#{one}/cmdline").start_with?("puma") }
      end
      yield pid, workers
    end
  end

  def installed?(command)
    system(command, "--version", %i[out err] => File::NULL)
  end

  # Yields the pid of a server that is there for this test.
  def with_server(*command)
    folder = folder_with("config.ru" => "run ->(_env) { [200, {}, []] }\n")
    pid = Process.spawn(*command, chdir: folder, in: File::NULL, %i[out err] => File.join(folder, "log"))
    yield pid
  ensure
    end_server(pid) if pid
  end

  def end_server(pid)
    below = ProcessFacts.tree(pid)
    HighballServer.kill(pid, "TERM")
    wait_for("the end of the server", within: 20) { Process.wait(pid, Process::WNOHANG) }
  rescue Deadline::Missed # the server's workers may have started meanwhile
    below.each { |one| HighballServer.kill(one) }
    Process.wait(pid)
  end

  # The output for a user who may look into none of the processes. The binary is copied to where all users can run it.
  def as_nobody
    nobody = Etc.getpwnam("nobody")
    folder = folder_with("bin/highball" => File.binread(HighballServer::BINARY))
    binary = File.join(folder, "bin/highball")
    File.chmod(0o755, folder, File.dirname(binary), binary)
    output, error, ended = Open3.capture3(
      { "XDG_RUNTIME_DIR" => folder },
      "setpriv", "--reuid=#{nobody.uid}", "--regid=#{nobody.gid}", "--clear-groups", binary, "memory", "--json"
    )
    assert_predicate ended, :success?, error
    output
  end
end
