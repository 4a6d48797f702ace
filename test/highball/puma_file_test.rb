# frozen_string_literal: true

require "json"
require "minitest/autorun"
require "open3"
require "rbconfig"
require "tmpdir"
require "highball"
require "highball/puma_file"
require_relative "../support/puma_fixtures"

# What statements of a Puma configuration come to.
class PumaFileTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  READER = File.join(ROOT, "lib/highball/puma_config.rb")
  EXPECTED = File.join(PumaFixtures::FOLDER, "expected.md")
  # Variables that the shell of a developer may have set.
  CLEAN = %w[PORT PIDFILE BINDING WEB_CONCURRENCY RAILS_MAX_THREADS RAILS_MIN_THREADS MAX_THREADS MIN_THREADS RAILS_ENV
             RACK_ENV APP_ENV SOCKET BIND BUNDLE_GEMFILE RUBYOPT].to_h { |name| [name, nil] }.freeze

  # --- public configurations

  def test_each_statement_of_the_fixtures_becomes_what_the_table_says
    table = PumaFixtures::NAMES.map { |name| table_of(name) }.join("\n")
    text = "# What Highball makes of the statements in `test/puma`\n\nWritten by `HIGHBALL_BLESS=1 ruby -Ilib -Itest " \
           "test/highball/puma_file_test.rb`.\n\n#{table}"
    File.write(EXPECTED, text) if ENV["HIGHBALL_BLESS"]
    assert_equal File.read(EXPECTED), text
  end

  def test_there_are_twenty_of_them
    assert_operator PumaFixtures::NAMES.length, :>=, 20
  end

  # --- settings

  def test_threads
    { "5" => "5", "0, 5" => "3..5", "'0', '16'" => "3..16", "'0:2'" => "2", "3, 3" => "3",
      "4, 8" => "4..8" }.each do |arguments, count|
      assert_equal({ "threads" => [count] }, settings("threads #{arguments}"), arguments)
    end
    assert_equal %w[5 5..8], settings("threads 5, 5\nmax_io_threads 3")["threads"]
    assert_equal %w[3..13], settings("max_io_threads 8")["threads"]
    assert_raises(ArgumentError) { read("threads 0, 0") }
    assert_raises(ArgumentError) { read("threads 'many'") }
  end

  def test_workers
    { "3" => "3", "'4'" => "4", ":auto" => "auto", "'auto'" => "auto", "0" => "0",
      "nil" => "0" }.each do |argument, text|
      assert_equal({ "workers" => [text] }, settings("workers #{argument}"), argument)
    end
  end

  def test_a_port_alone_leaves_the_address_to_highball
    assert_equal({ "port" => ["4000"] }, settings("port '4000'"))
    assert_equal({ "bind" => ["tcp://10.0.0.1:4000"] }, settings("port 4000, '10.0.0.1'"))
    assert_equal({ "bind" => ["tcp://[::1]:4000"] }, settings("set_default_host '::1'\nport 4000"))
    assert_equal({ "bind" => ["127.0.0.1:4000", "unix://tmp/x.sock"] }, settings("port 4000\nbind 'unix://tmp/x.sock'"))
    assert_equal({ "port" => ["5"] }, settings("bind 'tcp://1.2.3.4:1'\nclear_binds!\nport 5"))
  end

  def test_times
    { "persistent_timeout 20" => %w[idle_timeout 20s], "first_data_timeout '5'" => %w[head_timeout 5s],
      "worker_boot_timeout 90" => %w[boot_timeout 90s], "worker_shutdown_timeout 1.5" => %w[drain_timeout 1.5s],
      "force_shutdown_after :immediately" => %w[drain_timeout 0s], "force_shutdown_after 3" => %w[drain_timeout 3s],
      "idle_timeout 60" => %w[sleep_after 60s], "persistent_timeout 0" => %w[idle_timeout 1ms] }
      .each do |line, (name, text)|
      assert_equal({ name => [text] }, settings(line), line)
    end
    assert_empty settings("force_shutdown_after")
  end

  def test_switches
    { "preload_app!" => %w[preload on], "preload_app! false" => %w[preload off], "quiet" => %w[access_log none],
      "quiet false" => %w[access_log -], "log_requests" => %w[access_log -], "early_hints" => %w[early_hints on],
      "fork_worker" => %w[refork_after 1000], "fork_worker 0" => %w[refork_after off] }.each do |line, (name, text)|
      assert_equal({ name => [text] }, settings(line), line)
    end
  end

  def test_options_that_highball_has_are_named
    known = File.read(File.join(ROOT, "docs/configuration.md")).scan(/^### (\w+)$/).flatten
    Highball::PumaStatements::OPTIONS.flat_map(&:target).each { |name| assert_includes known, name }
  end

  # --- jobs

  def test_solid_queue_runs_beside_the_workers
    async = { "SOLID_QUEUE_SUPERVISOR_MODE" => "async" }
    { "plugin :solid_queue" => {}, "plugin 'solid_queue'\nsolid_queue_mode :fork" => {},
      "solid_queue_mode :async\nplugin :solid_queue\nplugin :solid_queue" => async }.each do |text, env|
      file = read(text, "bin/jobs" => "")
      entry = { "name" => "jobs", "command" => %w[ruby bin/jobs], "env" => env }
      assert_equal [["process", entry, true]], (file.settings.map do |setting|
        [setting.name, JSON.parse(setting.value), setting.file.end_with?("config/puma.rb")]
      end)
      assert_empty file.notes
    end
  end

  def test_solid_queue_that_is_not_there_is_reported
    file = read("threads 1\nplugin :solid_queue\n")
    assert_equal [["plugin :solid_queue", 2]], (file.notes.map { |note| [note.statement, note.line] })
    assert_includes file.notes.first.remedy, "solid_queue:install"
    assert_equal %w[threads], file.settings.map(&:name)
  end

  # --- what is reported

  def test_what_is_not_carried_out_has_file_line_and_remedy
    file = read("threads 1\nstate_path 'tmp/state'\n\n\nplugin :litestream\nbind 'ssl://0.0.0.0:443?key=k'\n")
    assert_equal [["state_path", 2], ["plugin :litestream", 5], ["bind", 6]], (file.notes.map do |note|
                                                                                 [note.statement, note.line]
                                                                               end)
    assert(file.notes.all? { |note| note.file.end_with?("config/puma.rb") && note.remedy.length > 10 })
    assert_includes file.notes[1].remedy, "litestream:replicate"
    refute_includes file.notes[2].what, "key"
  end

  def test_an_unknown_statement_is_reported_with_a_guess
    file = read("wokers 3\nthreads 2\n")
    assert_equal [["wokers", 1, "Did you mean workers?"]],
                 (file.notes.map { |note| [note.statement, note.line, note.remedy] })
    assert_equal ["2"], file.settings.map(&:value)
  end

  def test_an_unknown_name_in_a_hook_is_an_error_there
    file = read("before_fork { no_such_method }\n")
    assert_raises(NameError) { file.hooks.first.block.call }
  end

  def test_lines_of_a_loaded_file_are_its_own
    file = read("load 'config/other.rb'\n", "config/other.rb" => "\n\ndaemonize\n")
    assert_equal [["daemonize", 3]], (file.notes.map { |note| [note.statement, note.line] })
    assert file.notes.first.file.end_with?("config/other.rb")
  end

  # --- what it is not

  def test_an_exception_is_reported_with_its_line
    { "threads 1\nraise 'no luck'\n" => [/RuntimeError: no luck/, 2], "threads 1\n\nexit\n" => [/exit was called/, 3],
      "require 'no_such_gem_here'" => [/LoadError/, 1], "threads 1\n)\n" => [/SyntaxError/, 2] }
      .each do |text, (message, line)|
      report = reported({ "config/puma.rb" => text })
      assert_match message, report["error"]["message"]
      assert_equal [line, "config/puma.rb"], [report["error"]["line"], report["error"]["file"][%r{config/puma\.rb\z}]],
                   text
    end
  end

  def test_what_the_file_prints_is_no_part_of_the_report
    report = reported({ "config/puma.rb" => "puts '{'\nsystem('echo }')\n$stdout.puts 'x'\nthreads 4\n" })
    assert_equal %w[threads], (report["settings"].map { |setting| setting["name"] })
  end

  # --- what it finds around it

  def test_constants_of_puma
    { "rackup DefaultRackup" => "config.ru", "tag Puma::Const::PUMA_VERSION" => "8.0.2",
      "tag Const::VERSION" => "8.0.2", "workers ''\ntag get(:workers, 'none').to_s" => "0",
      "tag Puma.jruby?.to_s" => "false", "tag Puma.windows?.to_s" => "false", "tag defined?(Puma)" => "constant",
      "tag Puma::Configuration::DEFAULTS[:worker_timeout].to_s" => "60", "tag DefaultTCPPort.to_s" => "9292",
      "workers 3\ntag Puma.cli_config.options[:workers].to_s" => "3", "tag get(:threads, 'none')" => "none",
      "tag Puma.respond_to?(:stats).to_s" => "false" }.each do |text, value|
      options = read(text).options
      assert_equal value, options[:tag] || options[:rackup], text
    end
    assert_equal ["Puma::Plugin.create"], read("Puma::Plugin.create { }").notes.map(&:statement)
  end

  def test_the_rest_of_puma_is_named_with_line_and_remedy
    { "Puma.stats" => "highball status --json", "Puma::LogWriter.stdio" => "$stderr", "Puma::Binder" => "remove it",
      "Puma.no_such_thing" => "remove it", "Rails.root" => "File.expand_path" }.each do |text, remedy|
      error = reported({ "config/puma.rb" => "threads 1\n#{text}\n" })["error"]
      assert_includes error["message"], remedy
      assert_equal 2, error["line"], text
    end
    assert_raises(NameError) { read("before_fork { Puma.stats }").hooks.first.block.call }
  end

  # As Puma has loaded them by then; also where another file uses them, and in hooks.
  def test_libraries
    libraries = Highball::PumaFile::Surroundings::LIBRARIES.values.flatten
    assert_empty(reported({ "config/puma.rb" => libraries.map { |name| "::#{name}; #{name}\n" }.join })["notes"])
    { "Etc.nprocessors" => nil, "Time.parse('2020-01-01')" => nil, "URI('http://x')" => nil, "[1].to_set" => nil,
      "Dir.tmpdir" => nil, "require_relative 'other'" => "Socket.gethostname; Etc.nprocessors",
      "raise unless defined?(URI)" => nil }.each do |text, other|
      assert_nil reported({ "config/puma.rb" => text, "config/other.rb" => other.to_s })["error"], text
    end
  end

  def test_no_library_is_loaded_that_it_does_not_use
    loaded = "$LOADED_FEATURES.grep(/optparse|socket|tempfile/).first"
    assert_empty reported({ "config/puma.rb" => "state_path #{loaded}" })["notes"]
  end

  # `App` is the application's, not Highball::App.
  def test_names_of_highball_are_not_in_the_way
    %w[App Log Server Worker Config Hooks Message FORMS Setting PumaFile].each do |name|
      assert_raises(NameError, name) { read("before_fork { #{name}.to_s }").hooks.first.block.call }
    end
    text = "tag [Module.nesting.length, local_variables.grep_v(/highball/)].inspect"
    assert_equal "[1, []]", read(text).options[:tag]
  end

  # --- the table

  # Each statement of Puma 5 to 8 is known, and takes what it takes there.
  def test_all_statements_of_puma
    rows = File.readlines(File.join(PumaFixtures::FOLDER, "statements.txt")).grep_v(/^#/).map(&:split)
    assert_operator rows.length, :>, 90
    rows.each { |name, counts, _, *keywords| assert_takes(name, *counts.split("..").map(&:to_i), keywords) }
  end

  def test_all_statements_of_the_puma_that_is_installed
    output, ended = Open3.capture2e(RbConfig.ruby, "-rpuma", "-rpuma/configuration", "-rpuma/dsl", "-e",
                                    "puts Puma::DSL.public_instance_methods(false)")
    skip "there is no Puma" unless ended.success?
    assert_empty output.split - Highball::PumaStatements::BY_NAME.keys
  end

  def test_every_statement_is_a_method_and_every_method_is_in_the_table
    known = Highball::PumaStatements::BY_NAME.keys.sort
    methods = Highball::PumaFile::Dsl.public_instance_methods(false).map(&:to_s) - %w[close method_missing
                                                                                      respond_to_missing?]
    assert_equal known, methods.sort
    Highball::PumaStatements::TABLE.each { |statement| assert_includes Highball::PumaStatements::FATES, statement.fate }
  end

  def test_the_page_is_made_from_the_table
    require_relative "../support/puma_page"
    path = File.join(ROOT, "docs/migrating/puma-statements.md")
    if ENV["HIGHBALL_BLESS"]
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, PumaPage.text)
    end
    assert_equal File.read(path), PumaPage.text
  end

  private

  def in_folder(files)
    Dir.mktmpdir("highball-puma") do |folder|
      files.each do |name, text|
        path = File.join(folder, name)
        FileUtils.mkdir_p(File.dirname(path))
        File.write(path, text)
      end
      yield folder
    end
  end

  # A file with this text, read.
  def read(text, files = {})
    in_folder({ "config/puma.rb" => text }.merge(files)) do |folder|
      Highball::PumaFile.new(folder).read("config/puma.rb")
    end
  end

  # Whether the statement takes the numbers of arguments from the least to the most.
  def assert_takes(name, least, most, keywords)
    assert Highball::PumaStatements.find(name), "#{name} is not known"
    parameters = Highball::PumaFile::Dsl.instance_method(name).parameters.map(&:first)
    required = parameters.count(:req)
    assert_operator required, :<=, least, name
    unless parameters.include?(:rest)
      assert_operator required + parameters.count(:opt), :>=, most, "#{name} takes fewer arguments than with Puma"
    end
    assert_includes parameters, :keyrest, name if keywords.any?
  end

  # Its settings: {name => texts}.
  def settings(text) = read(text).settings.group_by(&:name).transform_values { |all| all.map(&:value) }

  # The report that the binary reads.
  def reported(files, environment = {})
    in_folder(files) do |folder|
      output, printed, ended = Open3.capture3(CLEAN.merge(environment), RbConfig.ruby, READER, "config/puma.rb",
                                              chdir: folder)
      assert_predicate ended, :success?, printed
      return JSON.parse(output.gsub(File.realpath(folder), "/srv/app").gsub(folder, "/srv/app"))
    end
  end

  def table_of(name)
    report = reported(PumaFixtures.app(name), PumaFixtures.environment(name))
    assert_nil report["error"], name
    rows = settings_of(report) + hooks_of(report) + notes_of(report) + skipped_of(report)
    rackup = report["rackup"]
    rows << [line(rackup), "the application is loaded from `#{rackup['path']}`"] if rackup
    variables = PumaFixtures.environment(name).map { |variable, value| "`#{variable}=#{value}`" }
    "## #{name}\n\n#{"With #{variables.join(', ')}.\n\n" if variables.any?}| line | becomes |\n| --- | --- |\n" \
      "#{rows.sort_by { |row| [row[0], row[1]] }.map { |place, text| "| #{place} | #{text} |\n" }.join}"
  end

  def line(row) = "#{File.basename(row['file'])}:#{row['line'].to_s.rjust(2, '0')}"
  def settings_of(report) = report["settings"].map { |row| [line(row), "option `#{row['name']} = #{row['value']}`"] }
  def hooks_of(report) = report["hooks"].map { |row| [line(row), "`#{row['statement']}` runs at #{row['moment']}"] }
  def skipped_of(report) = report["skipped"].map { |row| [line(row), "`#{row['statement']}`: nothing to do"] }

  def notes_of(report)
    report["notes"].map { |row| [line(row), "**reported**: `#{row['statement']}`: #{row['what']} #{row['remedy']}"] }
  end
end
