# frozen_string_literal: true

require_relative "../../support/spawner_test_case"

# Openers are processes of a user that open this user's files. The user may stop and kill them again and again, without
# an effect on others.
class TenantOpenersTest < SpawnerTestCase
  FILES = { "public/own.txt" => "own" }.freeze
  # Openers of one user at a time.
  MOST_OPENERS = 3
  # Openers that are stopped one after the other, each for 2 s, with pauses between them that become longer.
  ROUNDS = 3

  def test_openers_that_are_stopped_again_and_again
    server = serve_tenants(attacker_app(FILES), victim_app(FILES))
    assert_equal "own", ask_attacker(server, "/own.txt").body
    threads = threads_of(server)
    again_and_again_as_attacker(server, :STOP) do
      seen = []
      wait_for("#{ROUNDS} openers of the attacker's", within: 90) do
        seen |= openers_of(server, ATTACKER)
        assert_others_are_served(server)
        assert_equal 200, ask_attacker(server, "/own.txt").status, "the file, or the application"
        assert_runs_as ATTACKER, facts(server, { "Host" => HOSTS[ATTACKER] })
        seen.length >= ROUNDS
      end
      assert_few_processes_and_threads(server, threads)
    end
    wait_for("the attacker's file", within: 60) { ask_attacker(server, "/own.txt").body == "own" }
  end

  # Each asks for another file, so that none is in the cache.
  def test_many_requests_while_an_opener_is_stopped
    files = Array.new(40) { |number| ["public/#{number}.txt", number.to_s] }.to_h
    server = serve_tenants(attacker_app(files), victim_app(FILES))
    assert_equal "0", ask_attacker(server, "/0.txt").body
    threads = threads_of(server)
    again_and_again_as_attacker(server, :STOP) do
      wait_for("the stop", within: 30) { openers_of(server, ATTACKER).all? { |pid| ProcessFacts.stopped?(pid) } }
      clients = Array.new(40) { |number| Thread.new { ask_attacker(server, "/#{number}.txt", within: 60).status } }
      while clients.any?(&:alive?)
        assert_others_are_served(server)
        assert_few_processes_and_threads(server, threads)
      end
      assert_equal [200], clients.map(&:value).uniq
    end
    wait_for("the attacker's files", within: 60) do
      40.times.all? { |number| ask_attacker(server, "/#{number}.txt").body == number.to_s }
    end
  end

  def test_error_pages_while_openers_are_stopped
    raising = { "config.ru" => "run ->(_env) { raise 'alas' }\n", "public/500.html" => "sorry" }
    server = serve_tenants(attacker_app(raising), victim_app(FILES))
    assert_equal "sorry", ask_attacker(server).body
    again_and_again_as_attacker(server, :STOP) do
      wait_for("an answer without the page", within: 60) do
        assert_others_are_served(server)
        answer = ask_attacker(server)
        assert_equal 500, answer.status
        answer.body != "sorry"
      end
    end
    wait_for("the page", within: 60) { ask_attacker(server).body == "sorry" }
  end

  def test_openers_that_are_killed_again_and_again
    server = serve_tenants(attacker_app(FILES), victim_app(FILES))
    assert_equal "own", ask_attacker(server, "/own.txt").body
    threads = threads_of(server)
    again_and_again_as_attacker(server, :KILL) do
      50.times do
        assert_others_are_served(server)
        assert_equal 200, ask_attacker(server, "/own.txt").status
      end
      assert_few_processes_and_threads(server, threads)
    end
    wait_for("the attacker's file", within: 60) { ask_attacker(server, "/own.txt").body == "own" }
  end

  # None of these files is in the front's memory.
  def test_a_killed_opener_goes_unnoticed
    files = Array.new(20) { |number| ["public/#{number}.txt", number.to_s] }.to_h
    server = serve_tenants(attacker_app, victim_app(files))
    20.times do |number|
      openers_of(server, VICTIM).each { |pid| Process.kill(:KILL, pid) }
      assert_equal number.to_s, ask_victim(server, "/#{number}.txt").body
    end
  end

  private

  def assert_others_are_served(server)
    assert_equal "own", ask_victim(server, "/own.txt").body
    assert_victim_serves(server)
  end

  # One more thread looks for files, and one more writes a log.
  def assert_few_processes_and_threads(server, threads_before)
    assert_operator openers_of(server, ATTACKER).length, :<=, MOST_OPENERS
    assert_operator threads_of(server), :<=, threads_before + 4
  end

  def threads_of(server) = Dir.children("/proc/#{front_of(server)}/task").length

  # While the block runs, a process of the attacker's sends this signal to each opener of its user.
  def again_and_again_as_attacker(server, signal)
    pid = fork do
      become(Etc.getpwnam(ATTACKER))
      loop do
        openers_of(server, ATTACKER).each { |opener| signal_to(opener, signal) }
        sleep(0.01)
      end
    ensure
      exit!
    end
    yield
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def become(user)
    Process.initgroups(user.name, user.gid)
    Process::GID.change_privilege(user.gid)
    Process::UID.change_privilege(user.uid)
  end

  def signal_to(pid, signal)
    Process.kill(signal, pid)
  rescue Errno::ESRCH
    nil # it has ended
  end
end
