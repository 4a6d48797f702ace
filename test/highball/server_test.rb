# frozen_string_literal: true

require "open3"
require_relative "../support/server_test_case"

# The life of requests in spite of applications: exceptions, callbacks, processes, garbage.
class ServerTest < ServerTestCase
  # An exception whose message cannot be read.
  class Unspeakable < StandardError
    def message = raise(ArgumentError, "not even this")
  end

  # --- exceptions

  def test_every_kind_of_exception_becomes_a_500_and_an_entry_in_the_log
    anonymous = Class.new(StandardError)
    raises = {
      ArgumentError => -> { raise ArgumentError, "on purpose" },
      SystemExit => -> { exit 3 },
      NoMemoryError => -> { raise NoMemoryError, "none left" },
      SystemStackError => -> { (deep = -> { deep.call }).call },
      UncaughtThrowError => -> { throw :uncaught },
      Interrupt => -> { raise Interrupt },
      NotImplementedError => -> { raise NotImplementedError },
      "an exception of a class without name" => -> { raise anonymous, "anonymous" }
    }
    raises.each do |name, action|
      serve { action.call }
      first_thread = threads.first
      answer = ask
      assert_equal [500, true], [answer.status, answer.complete?], name
      wait_for("the log") { log.match?(%r{the application raised an exception worker=1 request="GET /".*#{name}}m) }
      assert_same first_thread, threads.first, "#{name} ended its thread"
      assert_equal 500, ask.status
    end
    assert_match(/server_test\.rb:\d+/, log)
  end

  def test_messages_that_are_hard_to_write
    messages = ["caf\xE9".b, "café", "caf\xE9".dup.force_encoding("UTF-8"), "café".encode("UTF-16LE"), "\e[2J\0",
                "x" * 100_000, nil]
    messages.each do |message|
      serve { raise(message ? message.dup : "") }
      assert_equal 500, ask({ "PATH_INFO" => "/caf\xC3\xA9\xFF" }).status, message
    end
    serve { raise Unspeakable }
    assert_equal 500, ask.status
    wait_for("the log") { log.include?("(its message cannot be had: ArgumentError)") }
    assert_predicate log, :valid_encoding?
    refute_match(/[\e\0]/, log)
    assert_operator log.lines.map(&:length).max, :<, 10_000
  end

  def test_a_log_that_cannot_be_written_is_no_second_error
    @log.close_write
    serve { raise "not logged" }
    2.times { assert_equal 500, ask.status }
    @log = StringIO.new
  end

  def test_only_in_development_the_front_receives_the_exception
    serve { raise "between us" }
    assert_equal "", ask.failure
    serve(development: true) do
      Integer("x")
    rescue ArgumentError
      raise "no number"
    end
    failure = JSON.parse(ask.failure)
    assert_equal ["RuntimeError", "no number"], failure["error"].values_at("class", "message")
    assert_match(/server_test\.rb:\d+/, failure["error"]["backtrace"].first)
    assert_equal(["ArgumentError"], failure["causes"].map { |cause| cause["class"] })
  end

  def test_the_report_of_an_exception_is_bounded
    ["x" * 100_000, "\0" * 20_000, "caf\xE9", "\xFF" * 9000].each do |message|
      serve(development: true) { raise message }
      failure = ask.failure
      assert_operator failure.bytesize, :<=, Highball::Server::FAILURE_BYTES
      assert_equal "RuntimeError", JSON.parse(failure).dig("error", "class")
    end
    serve(development: true) { raise Unspeakable }
    assert_match(/its message cannot be had/, JSON.parse(ask.failure).dig("error", "message"))
  end

  def test_a_broken_head_after_an_early_one_is_no_second_head
    serve { [200, {}, Enumerator.new { |body| body << "a" << 1 }] }
    assert_equal %i[head body abort], ask.kinds
  end

  # --- callbacks

  def test_callbacks_after_the_response
    seen = Queue.new
    serve do |env|
      finished = env["rack.response_finished"] ||= []
      2.times { |number| finished << ->(*given) { seen << [number, given[1], given[3]&.message] } }
      env["rack.after_reply"] << -> { seen << :first } << -> { raise "in a callback" } << -> { seen << :third }
      env["PATH_INFO"] == "/raise" ? raise("early") : [201, {}, ["text"]]
    end
    rack3 = Highball::EnvTemplate.rack3?
    { "/" => [201, nil], "/raise" => [nil, "early"] }.each do |path, (status, message)|
      get(path)
      expected = rack3 ? [[1, status, message], [0, status, message]] : []
      expected += %i[first third]
      assert_equal(expected, Array.new(expected.length) { Timeout.timeout(10) { seen.pop } })
    end
    wait_for("the log") { log.scan("in a callback").length == 2 }
    assert_empty seen
  end

  # --- processes that the app makes

  def test_commands_and_forked_blocks
    commands = {
      "/backticks" => -> { `echo backticks` },
      "/open3" => -> { Open3.capture2("cat", stdin_data: "open3")[0] },
      "/system" => -> { system("true").to_s },
      "/fork" => lambda {
        read, write = IO.pipe
        Process.wait(fork { write.write("fork") })
        write.close
        read.read
      }
    }
    serve { |env| [200, {}, [commands.fetch(env["PATH_INFO"]).call.chomp]] }
    assert_equal(%w[backticks open3 true fork], commands.keys.map { |path| get(path).body })
    assert_empty log
  end

  # A child that is forked during a request and runs on: it may neither answer nor serve, and ends with its own status.
  def test_a_child_that_comes_back_has_no_part_in_the_ring
    ends = { "/exit" => -> { exit 7 }, "/raise" => -> { raise "in the child" }, "/kill" => -> { Thread.current.kill },
             "/answer" => -> { [200, {}, ["from the child"]] } }
    serve do |env|
      pid = fork or next ends.fetch(env["PATH_INFO"]).call
      _, status = Timeout.timeout(20) { Process.wait2(pid) }
      [200, {}, ["#{status.exitstatus.inspect} #{status.termsig.inspect}"]]
    end
    statuses = ends.keys.to_h { |path| [path, get(path).body] }
    assert_equal "7 nil", statuses["/exit"], log
    statuses.each_value { |status| refute_match(/ \d/, status) }
    assert_equal 1, threads.length
  end

  def test_the_rings_descriptors_are_not_inherited
    serve { [200, {}, [`ls -l /proc/self/fd`]] }
    refute_match(/highball-ring|eventfd|socket/, ask.body.lines.drop(4).join)
  end

  # --- the garbage collector

  def test_serving_while_garbage_is_collected_all_the_time
    body = Random.new(3).bytes(30_000)
    serve(threads: 2) do |env|
      [200, { "x-own" => env["HTTP_X_OWN"], "x-list" => [env["REMOTE_ADDR"], "b"] }, [env["rack.input"].read, body]]
    end
    GC.stress = true
    answers = Array.new(3) do |n|
      ask({ "HTTP_X_OWN" => "own #{n}", "REMOTE_ADDR" => "10.0.0.#{n}" }, body: "input #{n}")
    end
  ensure
    GC.stress = false
    answers&.each_with_index do |answer, n|
      assert_equal ["own #{n}", "10.0.0.#{n}", "input #{n}#{body}"],
                   [answer.head["x-own"], answer.head["x-list"], answer.body]
    end
  end

  def test_serving_while_objects_are_moved_about
    skip "this Ruby cannot compact" unless GC.respond_to?(:verify_compaction_references)
    serve do |env|
      [200, {}, [env.values_at("REMOTE_ADDR", "SERVER_NAME", "REQUEST_METHOD", "PATH_INFO", "HTTP_X_A").join(" ")]]
    end
    20.times do |n|
      GC.compact
      answer = ask({ "REMOTE_ADDR" => "10.0.0.#{n / 3}", "HTTP_X_A" => "a#{n}" })
      assert_equal "10.0.0.#{n / 3} test GET / a#{n}", answer.body
    end
  end

  # Whatever an exception and the env hold: it is logged, and the client gets its answer.
  def test_exceptions_of_other_bytes_and_odd_requests_are_logged
    odd = Class.new(StandardError) { def message = raise("no") }
    [[RuntimeError.new("caf\xE9 broke"), /caf\\+xE9 broke/], [odd.new, /its message cannot be had/],
     [RuntimeError.new("\xE9 broke".dup.force_encoding("UTF-16LE")), /RuntimeError/]].each do |error, words|
      serve(development: true) do |env|
        env["PATH_INFO"] = "/gr\u00fcn"
        env["QUERY_STRING"] = "q=\xE9".b
        env["HTTP_X_ODD"] = "\xE9".b
        env["rack.request.form_vars"] = BasicObject.new
        error.set_backtrace(["/caf\xE9.rb:1:in `x'"])
        raise error
      end
      assert_equal 500, ask({}).status
      assert_match words, log
      assert_match(%r{/caf\\+xE9.rb:1}, log)
    end
  end
end
