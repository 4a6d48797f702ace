# frozen_string_literal: true

require_relative "../../support/admin"
require_relative "../../support/tenants_test_case"

# What applications, clients and names of files say comes into terminals, logs and pages as text: no character does
# anything there, and no byte keeps anybody from an answer.
module HostileText
  # A title for the terminal, a bell, C1, DEL, and characters that change the direction of writing or have no width.
  HOSTILE = "\e]0;owned\a\u009b2J\u007f\u202e\u2066\u061c\u200b\u2028\ufeff"
  # The same in Ruby's source.
  SOURCE = HOSTILE.dump
  # In a name of a file, with bytes that are not UTF-8.
  NAME = "caf\xE9#{HOSTILE}".b
  RAW = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/
  LONG = 100_000

  # An application that says so wherever it can.
  APP = <<~RUBY.freeze
    HOSTILE = #{SOURCE}
    %i[RUBY_VERSION RUBY_ENGINE RUBY_DESCRIPTION].each do |name|
      Object.send(:remove_const, name)
      Object.const_set(name, "3.1.2" + HOSTILE)
    end
    $0 = "puma 5.6.5 " + HOSTILE
    run lambda { |env|
      case env["PATH_INFO"]
      when "/raise" then raise HOSTILE + "m" * #{LONG}
      when "/die" then Process.kill("KILL", Process.pid) && sleep
      when /slow/
        Thread.current.name = HOSTILE
        $0 = "puma 5.6.5 " + HOSTILE
        sleep
      when "/eval" then [200, {}, [eval(env["rack.input"].read).to_s]]
      else [200, {}, ["ok"]]
      end
    }
  RUBY

  private

  def assert_clean(text, about = nil)
    text = text.dup.force_encoding("UTF-8")
    about = about.to_s.dump
    assert_predicate text, :valid_encoding?, "#{about}: #{text.dump[0, 2000]}"
    raw = text[RAW]
    assert_nil raw, "#{about}: #{text[/.{0,80}#{RAW}.{0,40}/m].dump}" if raw
    text
  end

  # Runs a command: its output. It may fail, as it should.
  def clean(*words, succeeds: true, **settings)
    output, ended = HighballServer.run(*words, within: 60, **settings)
    text = assert_clean(output, words.join(" ").b)
    refute_match(/panicked/, text)
    assert_equal succeeds, ended.success?, text[0, 2000] unless succeeds.nil?
    text
  end
end

# One user's server and its own applications.
class HostileTextTest < ManyAppsTestCase
  include Admin
  include HostileText

  %w[human json].each do |format|
    define_method("test_every_command_and_page_with_a_log_for_#{format == 'json' ? 'programs' : 'people'}") do
      start_hostile(format)
      say_hostile_things
      assert_commands_are_clean
      assert_pages_are_clean
      break_it
      assert_clean(@server.log, "log")
      @server.log.each_line { |line| JSON.parse(line) if line.start_with?("{") } if format == "json"
    ensure
      @clients&.each(&:close)
    end
  end

  def test_the_page_of_an_error
    folder = hostile_folder
    server = serve_many(folder, environment: "development")
    %w[text/html application/json text/plain */*].each do |accept|
      answer = server.get("/raise?#{accept}", { "Accept" => accept, "X-Odd" => HOSTILE.delete("\e\a\u007f").b },
                          within: 60)
      assert_equal 500, answer.status
      assert_clean(answer.body, accept)
    end
    File.binwrite(File.join(folder, "config.ru"), "raise #{SOURCE}\n")
    clean("restart", *server.which, succeeds: false)
    assert_clean(server.log, "log")
  end

  # The log has a line of each of them, and no other line or field.
  def test_what_clients_send
    log = File.join(folder_with, "access.log")
    [["json"], ["combined"], ["{method} {target} {agent} {referer} {host}"]].each do |form|
      FileUtils.rm_f(log)
      options = form.flat_map { |name| ["--access-log-format", name] }
      server = serve(folder_with("config.ru" => APP), "--access-log", log, *options)
      server.exchange("GET /\u202e#{'p' * 500} HTTP/1.1\r\nHost: a\r\nReferer: \u009b\u202e\xff\r\n" \
                      "User-Agent: #{HOSTILE.delete("\e\a\u007f")}\r\nConnection: close\r\n\r\n".b)
      server.exchange("G\e]0;x\a / HTTP/1.1\r\nHost: \u202e\r\n\r\n".b)
      server.stop
      assert_clean(File.binread(log), form.join)
      assert_clean(server.log, form.join)
    end
  end

  def test_configuration_that_cannot_be_read
    quoted = HOSTILE.codepoints.map { |code| format('\\U%08x', code) }.join
    ["\"a#{quoted}\" = 1\n", "threads = \"#{quoted}\"\n", "bind = \"#{quoted}\"\n", "name = \"#{quoted}\"\n",
     "access_log_format = \"#{quoted}\"\n", "\"#{'k' * LONG}\" = 1\n", "\e[31m\n", "threads = \"\xff\"\n".b,
     "[\"#{quoted}\"]\na = 1\n", "env = { \"#{quoted}\" = \"1\" }\nbind = 1\n"].each do |content|
      folder = folder_with("config.ru" => APP, "config/highball.toml" => content)
      [["serve"], ["doctor"], %w[config nginx], %w[config systemd]].each do |words|
        output = clean(*words, folder, succeeds: false)
        assert_operator output.bytesize, :<, 60_000, "#{words}: it is cut"
      end
    end
  end

  def test_configuration_for_puma_that_raises
    ["raise #{SOURCE}\n", "threads #{SOURCE}\n", "bind #{SOURCE}\n", "#{HOSTILE}\n", "not_there(#{SOURCE})\n",
     "$stderr.puts #{SOURCE}\nexit!\n"].each do |content|
      folder = folder_with("config.ru" => APP, "config/puma.rb" => content)
      clean("doctor", folder, succeeds: nil)
      clean("config", "systemd", folder, succeeds: nil)
    end
  end

  def test_words_on_the_command_line
    [[HOSTILE], ["--#{HOSTILE}"], ["-b", HOSTILE], ["status", HOSTILE], ["stop", NAME], ["memory", NAME],
     ["top", "--once", NAME], ["config", HOSTILE], ["doctor", NAME], ["init", NAME], ["-c", HOSTILE],
     ["-e", HOSTILE, "--ruby", HOSTILE]].each do |words|
      clean(*words, succeeds: false)
    end
    clean("serve", env: { "HIGHBALL_THREADS" => "\xff#{HOSTILE}".b }, succeeds: false)
    clean("status", env: { "HIGHBALL_CONTROL" => "/nowhere/#{NAME}".b }, succeeds: false)
  end

  def test_init_in_such_a_folder
    folder = hostile_folder("Procfile" => "web\e[31m: #{HOSTILE}\nw\u202e: b\n", "Dockerfile" => HOSTILE)
    clean("init", "--dry-run", folder, succeeds: nil)
    clean("init", folder, succeeds: nil)
    %w[systemd nginx apache haproxy].each { |program| clean("config", program, folder, succeeds: false) }
  end

  # --- names

  def test_folders_of_any_name_serve_together
    names = ["plain", "größe", "gr\xF6\xDFe".b, "a b", "日本語", "x" * 200, NAME]
    %w[C C.UTF-8 POSIX].each do |locale|
      outer = folder_with(names.to_h { |name| ["#{name}/config.ru".b, echo("x")] })
      server = serve_many(*names.map { |name| File.join(outer, name) }, environment: nil,
                                                                        env: { "LC_ALL" => locale, "LANG" => locale })
      apps = server.full_status["apps"]
      assert_equal names.length, apps.length
      assert_includes apps.map { |app| app["url"][%r{http://([^:/]+)}, 1] }, "xn--gre-6ka8i.localhost"
      apps.each { |app| ask(server, app["url"][%r{http://([^:/]+)}, 1], "/") }
      names.each { |name| clean("status", File.join(outer, name)) }
      assert_clean(server.log)
      server.stop
    end
  end

  def test_files_of_a_folder_whose_name_is_not_utf_8_are_served
    files = { "config.ru" => echo("x"), "public/a.txt" => "static", "log/keep" => "",
              "config/highball.toml" => "access_log = 'log/access.log'\n" }
    outer = folder_with(files.transform_keys { |name| "caf\xE9/#{name}".b })
    folder = File.join(outer, "caf\xE9".b)
    server = serve(folder)
    assert_equal "static", server.get("/a.txt").body
    server.stop
    assert_match(%r{GET /a.txt}, File.read(File.join(folder, "log/access.log")))
  end

  # --- servers that are reached and do not answer

  def test_one_that_does_not_answer_as_it_should_is_not_none
    { "\e]0;x\a\u202e garbage\n" => /its answer does not fit this command/,
      "{\"type\":\"begun\",\"what\":\"x\"}\n" => /its answer does not fit this command/,
      "{\"type\":\"refused\",\"why\":\"no\\u001b\"}\n" => /refuses: no\\x1b/,
      "{\"type\":" => /closed the connection/,
      "" => /closed the connection without an answer.*its log/m }.each do |answer, expected|
      within_forged(->(client) { client.write(answer) }) do |control|
        [%w[status], %w[status --json], %w[restart], %w[stop], %w[top --once], %w[memory -p 1]].each do |words|
          text = clean(*words, env: { "HIGHBALL_CONTROL" => control }, succeeds: false)
          assert_match(expected, text, answer)
          refute_match(/no Highball is running/, text, answer)
        end
      end
    end
  end

  def test_one_that_takes_too_long_is_not_none
    within_forged(->(_client) { sleep }) do |control|
      text = clean("status", env: { "HIGHBALL_CONTROL" => control }, succeeds: false)
      assert_match(/no answer within \d+ s; its process is stopped or hangs/, text)
      refute_match(/no Highball is running/, text)
    end
  end

  private

  def hostile_folder(files = {})
    outer = folder_with
    folder = File.join(outer, NAME)
    { "config.ru" => APP }.merge(files).each do |name, content|
      FileUtils.mkdir_p(File.dirname(File.join(folder, name)))
      File.binwrite(File.join(folder, name), content)
    end
    folder
  end

  def start_hostile(format)
    @folder = hostile_folder
    other = folder_with("config.ru" => echo("other"))
    config = File.join(folder_with, "highball.toml")
    # A file can name paths of UTF-8 alone: the folder is reached by the command line.
    File.write(config, "log_format = \"#{format}\"\nthreads = 5\nrequest_timeout = \"2s\"\n")
    @server = serve_many(@folder, other, "-c", config, *admin, environment: "development",
                                                               env: { "HIGHBALL_LOG" => "debug" })
    @host = @server.full_status["apps"].first["url"][%r{http://([^:/]+)}, 1]
  end

  def say_hostile_things
    ask_hostile("/")
    ask_hostile("/raise", { "X-Odd" => HOSTILE.delete("\e\a\u007f").b })
    @clients = ["/slow/\u202e\u009b", "/slow/%1b%9b"].map do |target|
      @server.connect.tap { |client| client.write("GET #{target} HTTP/1.1\r\nHost: #{@host}\r\n\r\n".b) }
    end
    wait_for("both requests", within: 60) { overview.fetch("apps").sum { |app| app["requests"].length } >= 1 }
  end

  def ask_hostile(target, headers = {})
    @server.get(target, { "Host" => @host }.merge(headers), within: 60)
  end

  def overview = JSON.parse(clean("top", "--json", *@server.which))

  def assert_commands_are_clean
    [%w[status], %w[status --json], ["status", @folder], %w[top --once], %w[top --once --backtraces], %w[top --json],
     %w[memory], %w[memory --json]].each do |words|
      words += @server.which unless words.include?(@folder)
      clean(*words)
    end
    clean("memory")
    [%w[doctor], %w[doctor --json]].each { |words| clean(*words, @folder, succeeds: nil) }
  end

  def assert_pages_are_clean
    ["/", "/overview", "/metrics", "/readyz", "/livez", "/readyz/x", "/nowhere"].each do |path|
      ["*/*", "application/json"].each { |accept| assert_clean(ask_admin(path, { "Accept" => accept }).body, path) }
    end
    ["/", "/\u202e".b].each do |target| # the list of applications
      assert_clean(@server.get(target, { "Host" => "localhost" }).body, target)
    end
  end

  # A restart that fails, a worker that dies, and what both leave behind.
  def break_it
    ask_hostile("/die")
    File.binwrite(File.join(@folder, "config.ru"), "raise #{SOURCE} + 'm' * #{LONG}\n")
    output = clean("restart", @folder, succeeds: false)
    assert_match(/still serving/, output)
    clean("status", *@server.which)
    clean("status", "--json", *@server.which)
    clean("stop", *@server.which)
  end

  # A server whose control socket answers with the block.
  def within_forged(answer)
    folder = folder_with
    File.chmod(0o700, folder)
    path = File.join(folder, "control")
    listening = UNIXServer.new(path)
    File.chmod(0o600, path)
    thread = Thread.new do
      loop do
        client = listening.accept
        client.gets
        answer.call(client)
        client.close
      rescue SystemCallError, IOError
        next
      end
    end
    yield path
  ensure
    thread&.kill
    listening&.close
  end
end

# Root's server and its tenants.
class HostileTenantTextTest < TenantsTestCase
  include HostileText

  LINK = "current"
  # Says as whom it runs.
  SIMPLE = "run ->(env) { [200, {}, [Process.uid.to_s]] }\n"

  def test_a_tenant_cuts_root_off_from_nothing
    attacker = app_of(ATTACKER, { "one/config.ru" => SIMPLE }, "attacker-releases")
    server = serve_linked(attacker, "one")
    restart_into(server, attacker, NAME)
    assert_attacker_serves(server)
    assert_root_can_do_everything(server)
  end

  def test_a_tenants_release_with_such_a_name_at_the_start
    attacker = app_of(ATTACKER, { "one/config.ru" => SIMPLE }, "attacker-releases")
    File.rename(File.join(attacker, "one"), File.join(attacker, NAME))
    server = serve_linked(attacker, NAME)
    assert_attacker_serves(server)
    assert_root_can_do_everything(server)
  end

  %w[human json].each do |format|
    define_method("test_a_tenant_says_such_things_in_a_log_for_#{format == 'json' ? 'programs' : 'people'}") do
      server = serve_tenants(attacker_app("config.ru" => APP), top: "log_format = \"#{format}\"")
      say = "$stderr.puts(HOSTILE, 'y' * #{LONG}); $stdout.binmode.write(\"\\xff\\xe9\\e[2J\\n\"); $stdout.flush; 1"
      server.request("POST", "/eval", { "Host" => HOSTS[ATTACKER] }, say)
      ask_attacker(server, "/raise")
      wait_for("the lines") { server.log.match?(/xff|\\u00ff|\\\\xff/) }
      assert_clean(server.log, format)
      [%w[status], %w[status --json], %w[top --once], %w[memory], %w[memory --json]].each do |words|
        words += server.which unless words.first == "memory"
        clean(*words, env: server_env)
      end
    end
  end

  def test_a_tenants_configuration
    key = HOSTILE.codepoints.map { |code| format('\\U%08x', code) }.join
    ["\"a#{key}\" = 1\n", "name = \"#{key}\"\n", "threads = \"#{key}\"\n"].each do |content|
      attacker = attacker_app("config/highball.toml" => content)
      %w[doctor].each { |word| clean(word, attacker, env: root_env, succeeds: false) }
      server = serve_tenants(attacker)
      assert_victim_serves(server)
      assert_clean(server.log)
      clean("status", *server.which, env: server_env)
      server.stop
    end
  end

  private

  # Root serves the link `current` of the attacker's folder, and the victim.
  def serve_linked(attacker, release)
    link_to(attacker, release)
    serve_tenants(File.join(attacker, LINK))
  end

  def link_to(attacker, release)
    as_attacker do
      FileUtils.rm_f(File.join(attacker, LINK))
      File.symlink(release, File.join(attacker, LINK))
    end
  end

  def restart_into(server, attacker, release)
    as_attacker do
      FileUtils.cp_r(File.join(attacker, "one"), File.join(attacker, release))
      FileUtils.mkdir_p([File.join(attacker, "one/tmp"), File.join(attacker, release, "tmp")])
    end
    link_to(attacker, release)
    as_attacker do
      %W[one #{release}].each { |name| FileUtils.touch(File.join(attacker, name, "tmp/restart.txt")) }
    end
    wait_for("its restart", within: 60) { server.log.include?("the new version serves") }
  end

  def assert_attacker_serves(server)
    answer = ask_attacker(server)
    assert_equal [200, Etc.getpwnam(ATTACKER).uid.to_s], [answer.status, answer.body]
  end

  def assert_root_can_do_everything(server)
    assert_clean(server.log)
    refute_match(/question on the control socket failed/, server.log)
    assert_equal 2, server_status(server).fetch("apps").length
    [["status", *server.which], ["status", "--json", *server.which], ["top", "--once", *server.which], ["memory"],
     %w[restart victim], ["restart", *server.which]].each { |words| clean(*words, env: server_env) }
    clean("doctor", File.join(@place, "attacker-releases", LINK), env: root_env, succeeds: nil)
    assert_victim_serves(server)
    reload(server)
    clean("stop", *server.which, env: server_env)
  end

  # Root reads its configuration again.
  def reload(server)
    configure_tenants(File.join(@place, "attacker-releases", LINK), File.join(@place, "victim"),
                      entries: { VICTIM => "threads = 2" })
    server.signal("HUP")
    wait_for("the new configuration", within: 30) { server.log.include?("the configuration has changed") }
  end
end
