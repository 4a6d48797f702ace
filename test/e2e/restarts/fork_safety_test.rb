# frozen_string_literal: true

require_relative "../../support/refork_test_case"

# Workers share nothing that an application has opened, started or seeded at boot, neither after a fork nor after a
# refork.
class ForkSafetyTest < ReforkTestCase
  # A server that gives each connection a number, and notes which processes have used it.
  class Hub
    attr_reader :port, :users

    def initialize
      @server = TCPServer.new("127.0.0.1", 0)
      @port = @server.addr[1]
      @users = Hash.new { |users, number| users[number] = [] }
      @threads = [Thread.new { accept }]
    end

    def stop
      @threads.each(&:kill).each(&:join)
      @server.close
    end

    private

    def accept
      (1..).each do |number|
        client = @server.accept
        @threads << Thread.new { answer(client, number) }
      end
    end

    def answer(client, number)
      while (line = client.gets)
        @users[number] |= [line.to_i]
        client.puts(number)
      end
    rescue SystemCallError
      nil # it was killed
    ensure
      client.close
    end
  end

  def setup
    super
    @hub = Hub.new
  end

  def teardown
    super
    @hub.stop
  end

  def test_a_thread_a_database_a_socket_and_a_seed
    app = folder_with
    FileUtils.cp(File.join(HighballServer::APPS, "connected/config.ru"), app)
    # With one thread: while SQLite waits for another's lock, its binding lets no other thread of the process run.
    server = serve(app, complete: true, workers: 3, threads: 1, env: { "HUB_PORT" => @hub.port.to_s })
    all = visit_every_worker(server)
    3.times do
      refork(server)
      all += visit_every_worker(server)
    end
    assert_nothing_shared(all)
  end

  private

  # The answers of all workers, several of each.
  def visit_every_worker(server)
    wait_for("all workers") { workers(server) == %w[serving serving serving] }
    pids = server.worker_pids
    answers = []
    wait_for("answers of all workers", within: 30) do
      answers.concat(concurrently(8) { JSON.parse(server.get("/").body) })
      pids.all? { |pid| answers.count { |answer| answer["pid"] == pid } >= 3 }
    end
    assert_empty answers.map { |answer| answer["pid"] }.uniq - pids
    answers
  end

  def assert_nothing_shared(answers)
    assert_equal 12, answers.map { |answer| answer["pid"] }.uniq.length
    answers.each do |answer|
      assert_operator answer["at_boot"], :>, 0
      assert_equal 0, answer["inherited"], "a connection to the database came along"
      assert_operator answer["files"], :>, 0
      assert_operator answer["visits"], :>, 0
    end
    # Of all workers, of the workers that served while a mold was made, and of the first, where it was forked early.
    assert_includes 15..16, @hub.users.length
    @hub.users.each { |number, pids| assert_equal 1, pids.length, "connection #{number} is used by #{pids}" }
    numbers = answers.flat_map { |answer| answer["random"] }
    assert_equal numbers.uniq, numbers, "random numbers are repeated"
  end
end
