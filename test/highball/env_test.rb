# frozen_string_literal: true

require "uri"
require_relative "../support/server_test_case"

# The env of applications (Rack SPEC, "The Environment" and "The Input Stream").
class EnvTest < ServerTestCase
  # The env of a request, after it was answered.
  def env_of(...)
    seen = nil
    serve do |env|
      seen = env
      [200, {}, []]
    end
    ask(...)
    seen
  end

  # The block's value for the env, computed during the request.
  def during(*request, **options, &block)
    seen = nil
    serve do |env|
      seen = block.call(env)
      [200, {}, []]
    end
    ask(*request, **options)
    raise log unless log.empty?

    seen
  end

  # --- variables

  def test_the_required_ones
    env = env_of
    expected = { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/", "QUERY_STRING" => "",
                 "SERVER_NAME" => "test", "SERVER_PORT" => "80", "SERVER_PROTOCOL" => "HTTP/1.1",
                 "REMOTE_ADDR" => "127.0.0.1", "HTTP_HOST" => "test", "rack.url_scheme" => "http",
                 "rack.multithread" => false, "rack.multiprocess" => true, "rack.run_once" => false,
                 "rack.hijack?" => true }
    assert_equal expected, env.slice(*expected.keys)
    assert_same $stderr, env["rack.errors"]
    assert_respond_to env["rack.hijack"], :call
    %w[CONTENT_LENGTH CONTENT_TYPE rack.protocol rack.hijack_io].each { |name| refute_includes env, name }
  end

  # On a web server's connection. Rack 2 has one entry for both kinds of hijack.
  def test_what_cannot_be_taken_over_is_not_offered
    rack2 = Rack.release < "3"
    env = env_of(flags: [:no_takeover])
    assert_equal [!rack2, false], [env["rack.hijack?"], env.key?("rack.hijack")]
    env = env_of
    assert_equal [true, true], [env["rack.hijack?"], env.key?("rack.hijack")], "the next request"
  end

  def test_values_are_the_apps_own
    env = env_of({ "HTTP_X_A" => "caf\xE9", "PATH_INFO" => "/a%2Fb" })
    own = env.slice("HTTP_X_A", "PATH_INFO", "REQUEST_URI", "HTTP_HOST")
    assert_equal [false], own.values.map(&:frozen?).uniq
    assert_equal [Encoding::BINARY], own.values.map(&:encoding).uniq
    assert_equal ["caf\xE9".b, "/a%2Fb"], env.values_at("HTTP_X_A", "PATH_INFO")
  end

  def test_the_prefix_that_an_application_is_reached_below
    below = { "SCRIPT_NAME" => "/shop", "PATH_INFO" => "", "REQUEST_URI" => "/shop" }
    serve do |env|
      if env["SCRIPT_NAME"].empty?
        [200, {}, ["none"]]
      else
        [200, {}, [Rack::Request.new(env).url, env["SCRIPT_NAME"].frozen?.to_s]]
      end
    end
    assert_equal ["http://test/shopfalse", "none"], [ask(below).body, ask.body]
  end

  def test_one_request_leaves_nothing_in_the_env_of_the_next
    envs = []
    serve do |env|
      envs << env.merge("PATH_INFO" => env["PATH_INFO"].dup)
      env["app.own"] = 1
      env.delete("rack.errors")
      env["PATH_INFO"] << "changed"
      [200, {}, []]
    end
    ask({ "HTTP_X_ONCE" => "1", "REMOTE_ADDR" => "1.2.3.4", "SERVER_NAME" => "other" }, flags: %i[https http10])
    ask
    refute_includes envs.last, "HTTP_X_ONCE"
    refute_includes envs.last, "app.own"
    assert_same $stderr, envs.last["rack.errors"]
    assert_equal %w[/ 127.0.0.1 test http HTTP/1.1],
                 envs.last.values_at("PATH_INFO", "REMOTE_ADDR", "SERVER_NAME", "rack.url_scheme", "SERVER_PROTOCOL")
    assert_equal %w[https HTTP/1.0], envs.first.values_at("rack.url_scheme", "SERVER_PROTOCOL")
  end

  def test_a_hundred_fields
    fields = (1..100).to_h { |number| ["HTTP_X_#{number}", "value #{number}"] }
    assert_equal fields, env_of(fields).slice(*fields.keys)
  end

  def test_unusual_methods
    assert_equal "PROPFIND", env_of({ "REQUEST_METHOD" => "PROPFIND" })["REQUEST_METHOD"]
  end

  def test_protocols_that_the_client_offers
    assert_equal %w[websocket h2c], env_of({ "HTTP_UPGRADE" => "websocket , ,h2c" })["rack.protocol"]
  end

  def test_rack_lint_finds_no_fault
    echo = ->(env) { [200, { "content-type" => "text/plain" }, [env["rack.input"].read]] }
    linted = Rack::Lint.new(echo)
    serve(threads: 2) { |env| linted.call(env) }
    answer = ask
    assert_equal ["", 200], [answer.body, answer.status], log
    posted = ask({ "REQUEST_METHOD" => "POST", "CONTENT_LENGTH" => "5" }, body: "hello")
    assert_equal ["hello", 200], [posted.body, posted.status], log
  end

  # --- the input

  # Each has to behave like an IO in binary mode.
  def behaviour(input)
    [input.external_encoding, input.read(0), input.read(2), input.read(2, +"old"), input.gets, input.each.to_a,
     input.read(1), input.read, input.read(nil), input.read(0), input.gets, input.read.encoding,
     input.rewind, input.read(3).to_s.encoding, input.rewind, input.each.to_a, input.eof?]
  end

  def test_inputs_of_all_kinds_behave_like_a_file
    ["one\ntwo\nthree", "\xFF\x00\n".b, ""].each do |content|
      file = Tempfile.create.tap { |new| new.binmode.write(content) }
      file.rewind
      expected = behaviour(file)
      assert_equal expected, during({}, body: content) { |env| behaviour(env["rack.input"]) }
      file.rewind
      assert_equal expected, during({}, file: file) { |env| behaviour(env["rack.input"]) }
      assert_equal(expected, during { |env| behaviour(env["rack.input"]) }) if content.empty?
    end
  end

  def test_reading_nothing_into_a_buffer_empties_it
    buffer = +"old"
    assert_nil(during { |env| env["rack.input"].read(10, buffer) })
    assert_empty buffer
    assert_same(buffer, during { |env| env["rack.input"].read(nil, buffer) })
  end

  def test_an_absent_body_stays_readable_whatever_an_app_does_with_it
    serve do |env|
      input = env["rack.input"]
      text = input.read
      input.close
      input.seek(5)
      input.ungetc("x") rescue nil # rubocop:disable Style/RescueModifier -- what the one does must not reach the next
      [200, {}, [text, input.closed?.to_s]]
    end
    3.times { assert_equal "false", ask.body }
  end

  def test_the_file_of_a_body_is_closed_after_the_request
    input = nil
    serve do |env|
      input = env["rack.input"]
      [200, {}, [input.read]]
    end
    file = Tempfile.create.tap { |new| new.write("spooled") && new.rewind }
    assert_equal "spooled", ask({}, file: file).body
    wait_for("close") { input.closed? }
  end

  def test_files_of_requests_side_by_side_are_not_mixed_up
    serve(threads: 3) { |env| [200, {}, [env["rack.input"].read]] }
    placed = Array.new(3) do |number|
      file = Tempfile.create.tap { |new| new.write("file #{number}") && new.rewind }
      place({}, file: file)
    end
    assert_equal(["file 0", "file 1", "file 2"], placed.map { |one| answer_to(one).body })
  end
end
