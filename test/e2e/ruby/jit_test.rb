# frozen_string_literal: true

# marks: debian13

require "json"
require_relative "../../support/e2e_test"

# Ruby's compiler is on where it is wanted, for the application's own processes alone.
class JitTest < E2ETest
  APP = <<~'RUBY'
    require "json"
    require "open3"
    ASK = "JSON.generate([defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? true : false, ENV.keys])"
    AT_BOOT = eval(ASK).to_s
    run lambda { |env|
      return [200, {}, [AT_BOOT]] if env["PATH_INFO"] == "/at_boot"
      child = Open3.capture2("ruby", "-rjson", "-e", "print #{ASK}").first if env["PATH_INFO"] == "/child"
      [200, {}, [child || eval(ASK)]]
    }
  RUBY
  HAS_YJIT = `ruby -e 'print defined?(RubyVM::YJIT) ? true : false'` == "true"

  def setup
    super
    @folder = folder_with("config.ru" => APP)
  end

  def test_programs_of_the_application_do_not_inherit_it
    server = serve(@folder)
    assert_jit(server, HAS_YJIT)
    is_on, variables = ask(server, "/child")
    refute is_on
    assert_empty variables.grep(/JIT|RUBYOPT/)
    assert_empty ask(server).last.grep(/JIT|RUBYOPT/)
    expected = HAS_YJIT ? { "name" => "YJIT" } : { "off" => "this Ruby has none" }
    assert_equal expected, jit(server).slice(*expected.keys)
    assert_includes server.log, HAS_YJIT ? 'jit="YJIT on"' : 'jit="YJIT off: this Ruby has none"'
  end

  def test_the_boot_is_not_compiled
    [%w[--preload on], %w[--preload off]].each do |options|
      server = serve(@folder, *options)
      refute ask(server, "/at_boot").first
      assert_jit(server, HAS_YJIT)
      server.stop
    end
  end

  def test_workers_that_load_the_application_themselves_have_it
    assert_jit(serve(@folder, "--preload", "off"), HAS_YJIT)
  end

  def test_it_stays_on_over_restarts_and_reforks
    server = serve(@folder, workers: 2)
    %w[restart refork].each do |command|
      command_output(server, command)
      assert_jit(server, HAS_YJIT)
    end
  end

  def test_an_option_turns_it_on_and_off
    assert_off(serve(@folder, "--jit", "off"), "jit = off")
    assert_off(serve(@folder, environment: "development"), "the environment is development")
    assert_jit(serve(@folder, "--jit", "on", "--memory-limit", "100m", environment: "development"), HAS_YJIT)
  end

  def test_it_is_off_where_there_is_no_room_for_code
    server = serve(@folder, "--memory-limit", "100m")
    assert_off(server, "a worker may have 100 MiB of memory, and with compiled code it needs 128")
  end

  def test_what_the_environment_has_is_left_alone
    skip "this Ruby has no YJIT" unless HAS_YJIT
    on = serve(@folder, env: { "RUBY_YJIT_ENABLE" => "1" })
    assert_jit(on, true)
    assert_includes ask(on).last, "RUBY_YJIT_ENABLE"
    off = serve(@folder, env: { "RUBYOPT" => "--disable=yjit" })
    assert_off(off, "the environment sets it (RUBYOPT, RUBY_YJIT_ENABLE)")
  end

  # What Ruby 3.1 sets aside for code, and does not use, is given back.
  def test_it_takes_little_memory
    with, without = %w[on off].map do |value|
      server = serve(@folder, "--jit", value)
      assert_jit(server, HAS_YJIT && value == "on")
      server.memory_bytes
    end
    assert_operator with - without, :<, 24 << 20
  end

  def test_doctor_says_whether_it_is_on
    output, = HighballServer.run("doctor", "--json", "-e", "production", @folder, within: 60)
    check = JSON.parse(output).fetch("checks").find { |one| one["name"] == "jit" }
    assert_equal HAS_YJIT ? "YJIT on" : "YJIT off: this Ruby has none", check["what"]
    assert_equal HAS_YJIT, check["remedy"].nil?
  end

  private

  def ask(server, path = "/") = JSON.parse(server.get(path).body)

  def jit(server) = server.status.fetch("jit")

  def assert_jit(server, is_on) = assert_equal(is_on, ask(server).first)

  def assert_off(server, why)
    assert_jit(server, false)
    assert_equal why, jit(server)["off"]
    server.stop
  end
end
