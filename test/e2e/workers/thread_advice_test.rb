# frozen_string_literal: true

require_relative "../../support/e2e_test"

# `highball doctor` says how many threads are right, by what requests of the running server do with their time.
class ThreadAdviceTest < E2ETest
  APP = <<~RUBY
    CPU_TIME = Process::CLOCK_THREAD_CPUTIME_ID
    run lambda { |env|
      case env["PATH_INFO"]
      when "/wait" then sleep 0.03
      when "/compute"
        finish = Process.clock_gettime(CPU_TIME) + 0.01
        nil while Process.clock_gettime(CPU_TIME) < finish
      end
      [200, { "content-type" => "text/plain" }, ["ok"]]
    }
  RUBY
  ENOUGH = 100 # requests
  SHARES = /\Arequests compute for (\d+)% of their time, and wait for something else, such as the database, for (\d+)%/

  def test_requests_that_wait_need_more_threads
    server = serve_app(threads: 2)
    send_requests(server, "/wait")
    check, compute, wait = warning(server)
    assert_operator wait, :>, compute
    threads = check["what"][/so (\d+)( or more| to \d+)? threads would be right, and there are 2\z/, 1].to_i
    assert_operator threads, :>=, 4
    assert_includes check["remedy"], "`threads = #{threads}`"
    assert_includes check["remedy"], "#{threads} database connections"
  end

  def test_requests_that_compute_do_not
    server = serve_app(threads: 8)
    send_requests(server, "/compute")
    check, compute, wait = warning(server)
    assert_operator compute, :>, wait
    assert_match(/so \d+( to \d+)? threads? would be enough, and there are 8\z/, check["what"])
    assert_includes check["remedy"], "`threads = 3`"
  end

  def test_waiting_for_another_thread_of_the_worker_is_no_reason_for_more
    server = serve_app(threads: 4)
    send_requests(server, "/compute", clients: 4)
    refute_match(/would be right, and there are/, advice(server)["what"])
  end

  def test_a_few_requests_say_nothing
    server = serve_app(threads: 3)
    check = advice(server)
    assert_equal "ok", check["state"]
    assert_match(/not enough data to judge that: \d of #{ENOUGH} requests measured\z/, check["what"])
  end

  def test_its_own_server_does_not_take_the_address_away
    server = serve_app(threads: 3)
    address = checks(server, server.port).fetch("address")
    assert_equal "ok", address["state"]
    assert_match(/127\.0\.0\.1:#{server.port} is in use by Highball, for this application/, address["what"])
    other = checks(server, server.port, app: folder_with("config.ru" => APP))
    assert_equal "FAILED", other.fetch("address_in_use")["state"].upcase
    refute_includes other.keys, "threads"
  end

  private

  def serve_app(threads:) = serve(folder_with("config.ru" => APP), threads: threads)

  # Until the server has the times of enough of them.
  def send_requests(server, target, clients: 1)
    wait_for("the times of requests", within: 60) do
      answers = concurrently(clients) { server.connect { |client| Array.new(20) { client.get(target).status } } }
      assert_equal [200], answers.flatten.uniq
      server.status["request_times"]["requests"] >= ENOUGH
    end
  end

  # The advice, and the shares of their time in which requests compute and wait, in per cent.
  def warning(server)
    check = advice(server)
    assert_equal "warning", check["state"]
    [check, *check["what"].match(SHARES).captures.map(&:to_i)]
  end

  def advice(server) = checks(server, 0).fetch("threads")

  # What `highball doctor` finds, by name.
  def checks(server, port, app: server.app)
    output, = HighballServer.run("doctor", "--json", "-e", "production", "-b", "127.0.0.1", "-p", port.to_s,
                                 "--user", Process.uid.to_s, app, within: 60)
    JSON.parse(output).fetch("checks").to_h { |check| [check["name"], check] }
  end
end
