# frozen_string_literal: true

require_relative "../../support/checkpoints"
require_relative "../../support/spawner_test_case"

# Openers that are asked nothing for a while end, and the next request that needs one gets another.
class IdleOpenersTest < SpawnerTestCase
  IDLE_SECONDS = 0.2
  FILES = Array.new(300) { |number| ["public/#{number}.txt", number.to_s] }.to_h.freeze
  SLEEPS = "sleep_after = '300ms'\n"

  def setup
    super
    @checkpoints = Checkpoints.new(folder_with.tap { |folder| File.chmod(0o777, folder) })
    @next = 0
    @lock = Mutex.new
  end

  # The application of the other user serves on, and its files are looked at each second.
  def test_those_of_a_user_whose_applications_sleep_end
    server = serve_tenants(attacker_app(FILES), entries: { ATTACKER => SLEEPS }, env: environment(1.5))
    assert_file(server)
    assert_ended(server, ATTACKER)
    wait_for("the victim's opener") { openers_of(server, VICTIM).any? }
    assert_file(server)
    refute_empty openers_of(server, ATTACKER)
    assert_ended(server, ATTACKER)
    assert_runs_as ATTACKER, facts(server, { "Host" => HOSTS[ATTACKER] })
  end

  # A second one starts while the first one does not answer.
  def test_those_that_more_requests_have_needed_end
    server = serve_tenants(attacker_app(FILES), env: environment(1.5))
    assert_file(server)
    first = openers_of(server, ATTACKER)
    stop_processes(first)
    client = Thread.new { ask_attacker(server, "/last.txt", {}, within: 30) }
    wait_for("another one") { (openers_of(server, ATTACKER) - first).any? }
    first.each { |pid| HighballServer.kill(pid, "CONT") }
    assert_equal 200, client.value.status
    wait_for("the end of one", within: 30) { openers_of(server, ATTACKER).length == 1 }
    assert_file(server)
  end

  # A stopped process does not end when its socket is closed.
  def test_a_stopped_one_ends
    server = serve_sleepy(seconds: 3)
    assert_file(server)
    wait_for("sleep", within: 30) { asleep?(server) }
    stop_processes(openers_of(server, ATTACKER))
    assert_ended(server, ATTACKER)
    assert_file(server)
  end

  %w[opener.taken opener.ended].product(%i[none opener]).each do |step, victim|
    name = "test_requests_at_#{step.tr('.', '_')}#{'_without_the_opener' if victim == :opener}"
    define_method(name) do
      server = serve_sleepy
      reach(step, server)
      openers_of(server, ATTACKER).each { |pid| HighballServer.kill(pid) } if victim == :opener
      concurrently(6) { assert_file(server) }
      assert_runs_as ATTACKER, facts(server, { "Host" => HOSTS[ATTACKER] })
      @checkpoints.release(step)
      assert_ended(server, ATTACKER)
      assert_file(server)
    end
  end

  # Whatever has ended, nothing stays.
  %w[opener.taken opener.ended].product(%i[front spawner]).each do |step, victim|
    define_method("test_nothing_stays_at_#{step.tr('.', '_')}_without_the_#{victim}") do
      server = serve_sleepy
      reach(step, server)
      HighballServer.kill(victim == :front ? front_of(server) : server.pid)
      server.wait
      assert_empty server.orphans
    end
  end

  # Each file is asked for once, so none is in the server's memory. Some openers end, and some are killed.
  def test_requests_while_openers_end
    server = serve_sleepy(seconds: 0.01)
    killer = Thread.new do
      loop do
        openers_of(server, ATTACKER).each { |pid| HighballServer.kill(pid) }
        sleep(0.3) # one retry is made: the next one is not killed just then
      end
    end
    FILES.length.times { assert_file(server) }
  ensure
    killer&.kill&.join
  end

  private

  def environment(seconds) = { "HIGHBALL_OPENER_IDLE_SECONDS" => seconds.to_s }

  def serve_sleepy(seconds: IDLE_SECONDS)
    env = environment(seconds).merge(@checkpoints.environment)
    serve_tenants(attacker_app(FILES), entries: { ATTACKER => SLEEPS, VICTIM => SLEEPS }, env: env)
  end

  # Has the server stop where it ends an opener of the attacker's.
  def reach(step, server)
    wait_for("the end of all", within: 30) { children_named(server, :opener).empty? }
    @checkpoints.ask(step)
    assert_file(server)
    assert_equal front_of(server), @checkpoints.wait_until_reached(step)
  end

  # Asks for a new file each time.
  def assert_file(server)
    number = @lock.synchronize { @next += 1 } % FILES.length
    answer = ask_attacker(server, "/#{number}.txt", {}, within: 30)
    assert_equal [200, number.to_s], [answer.status, answer.body]
  end

  def asleep?(server) = server_status(server)["apps"].find { |app| app["name"] == "attacker" }["phase"] == "asleep"

  def assert_ended(server, user)
    seen = openers_of(server, user)
    wait_for("the end of all", within: 30) { openers_of(server, user).empty? }
    output = highball("memory", "--json", *server.which, env: server_env)
    listed = JSON.parse(output)["highball"].first["processes"].select { |one| one["role"] == "opener" }
    assert_empty listed.map { |one| one["pid"] } & seen
  end
end
