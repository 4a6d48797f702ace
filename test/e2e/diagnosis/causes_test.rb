# frozen_string_literal: true

require "cgi"
require "socket"
require_relative "../../support/broken_app"

# Why applications do not boot: an application for each cause, and its whole diagnosis. Causes of Rails are in
# rails_causes_test.rb.
class CausesTest < BrokenAppTest
  def test_a_gem_of_the_gemfile_that_does_not_exist
    app = folder_with("config.ru" => WELL, "Gemfile" => "gem 'rack'\ngem 'no_such_gem_at_all'\n")
    server = assert_diagnosed(app, cause: "missing_gem", file: "Gemfile", line: 2, remedy: /Gemfile/,
                                   command: /\Abundle install\z/)
    assert_includes server.status.dig("diagnosis", "error", "message"), "no_such_gem_at_all"
    assert_equal "load_bundler", server.status.dig("diagnosis", "step")
  end

  def test_a_gem_that_does_not_exist
    assert_diagnosed folder_with("config.ru" => "require 'rack'\nrequire 'no_such_gem_at_all'\n#{WELL}"),
                     cause: "missing_gem", file: "config.ru", line: 2, command: /\Agem install no_such_gem_at_all\z/
  end

  def test_a_framework_of_a_version_that_is_not_installed
    app = folder_with("config.ru" => WELL, "Gemfile" => "gem 'rack'\ngem 'rails', '99.0'\n")
    assert_diagnosed app, cause: "framework_not_installed", file: "Gemfile", line: 2, command: /\Abundle install\z/
  end

  def test_a_lock_file_that_does_not_fit_the_gemfile
    lock = "GEM\n  specs:\n    rack (99.0)\n\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n  rack\n"
    app = folder_with("config.ru" => WELL, "Gemfile" => "gem 'rack', '< 3'\n",
                      "Gemfile.lock" => "#{lock}<<<<<<< HEAD\n")
    assert_diagnosed app, cause: "gemfile_lock", file: "Gemfile.lock", line: 1, command: /\Abundle install\z/
  end

  def test_another_ruby
    app = folder_with("config.ru" => WELL, "Gemfile" => "# asks for\nruby '9.9.9'\ngem 'rack'\n")
    assert_diagnosed app, cause: "wrong_ruby", file: "Gemfile", line: 2, remedy: /Ruby version/, command: /--ruby/
  end

  def test_a_gemfile_that_is_no_ruby
    app = folder_with("config.ru" => WELL, "Gemfile" => "gem 'rack'\ngem (\n")
    assert_diagnosed app, cause: "gemfile", file: "Gemfile", line: 2, command: /bundle check/
  end

  def test_a_syntax_error_in_config_ru
    app = folder_with("config.ru" => "run ->(env) { [200, {}, []\nend\n")
    assert_diagnosed app, cause: "syntax_error", file: "config.ru", line: 2, command: /\Aruby -c .*config\.ru\z/
  end

  def test_a_syntax_error_in_a_file_of_the_application
    app = folder_with("config.ru" => "require_relative 'lib/app'\n",
                      "lib/app.rb" => "class App\n  def x(\n  end\nend\n")
    assert_diagnosed app, cause: "syntax_error", file: "lib/app.rb", line: 3, command: %r{\Aruby -c .*lib/app\.rb\z}
  end

  def test_a_syntax_error_in_a_template
    config = "require 'erb'\nfile = File.join(__dir__, 'page.erb')\n" \
             "page = ERB.new(File.read(file)).tap { |erb| erb.filename = file }.result\n" \
             "run ->(_) { [200, {}, [page]] }\n"
    app = folder_with("config.ru" => config, "page.erb" => "<p>\n<% if true %>\nyes\n<% en %>\n")
    assert_diagnosed app, cause: "syntax_error", file: "page.erb", command: /\Aerb -x .*page\.erb \| ruby -c\z/
  end

  def test_a_constant_that_is_misspelt
    app = folder_with("config.ru" => "require_relative 'app'\nrun Bolg\n", "app.rb" => "class Blog\nend\n")
    assert_diagnosed app, cause: "missing_constant", file: "config.ru", line: 2, remedy: /Did you mean Blog\?/
  end

  def test_a_file_whose_name_is_misspelt
    app = folder_with("config.ru" => "\nrequire_relative 'setings'\n#{WELL}", "settings.rb" => "")
    assert_diagnosed app, cause: "missing_file", file: "config.ru", line: 2, remedy: /Did you mean .*settings\.rb\?/
  end

  def test_an_extension_that_does_not_load
    app = folder_with("config.ru" => "require_relative 'native'\n#{WELL}", "native.so" => "\x7fELF garbage")
    assert_diagnosed app, cause: "native_extension", file: "config.ru", line: 1, command: /pristine/
  end

  def test_a_service_that_is_down
    port = free_port
    app = folder_with("config.ru" => "require 'socket'\nTCPSocket.new('127.0.0.1', #{port})\n#{WELL}")
    assert_diagnosed app, cause: "service_down", file: "config.ru", line: 2, remedy: /Start the service/
  end

  def test_a_socket_in_use
    TCPServer.open("127.0.0.1", 0) do |taken|
      app = folder_with("config.ru" => "require 'socket'\nTCPServer.new('127.0.0.1', #{taken.addr[1]})\n#{WELL}")
      assert_diagnosed app, cause: "address_in_use", file: "config.ru", line: 2, command: /\Ass /
    end
  end

  def test_permission_denied
    app = folder_with("config.ru" => "File.write('/proc/sys/kernel/ostype', 'x')\n#{WELL}")
    assert_diagnosed app, cause: "permission_denied", file: "config.ru", line: 1,
                          command: %r{\Als -ld /proc/sys/kernel/ostype\z}
  end

  def test_no_memory
    app = folder_with("config.ru" => "raise NoMemoryError, 'failed to allocate memory'\n")
    assert_diagnosed app, cause: "out_of_memory", file: "config.ru", line: 1, command: /free/
  end

  def test_an_app_that_is_killed
    assert_diagnosed folder_with("config.ru" => "Process.kill(:KILL, Process.pid)\nsleep\n"),
                     cause: "killed", remedy: /memory/, command: /journalctl/
  end

  def test_an_app_that_calls_exit
    assert_diagnosed folder_with("config.ru" => "# well\nabort 'no license'\n"),
                     cause: "exit_called", file: "config.ru", line: 2, remedy: /`exit` or `abort`/
  end

  def test_an_app_that_hangs
    assert_diagnosed folder_with("config.ru" => "require 'socket'\ndef wait = sleep\nwait\n"),
                     cause: "boot_timeout", file: "config.ru", line: 2, command: /--boot-timeout/,
                     options: ["--boot-timeout", "3s"]
  end

  def test_a_config_ru_that_runs_nothing
    assert_diagnosed folder_with("config.ru" => "# nothing\n"), cause: "not_an_app", remedy: /run/
  end

  # Bytes that are not UTF-8, in sources, messages and paths. A locale without an encoding is as usual in containers.
  def test_a_source_in_another_encoding
    app = folder_with("config.ru" => "require_relative 'app'\n#{WELL}", "app.rb" => "# text\nNAME = :caf\xE9\n",
                      "caf\xE9.rb" => "")
    [{}, { "LANG" => "C", "LC_ALL" => "C" }].each do |env|
      assert_diagnosed app, cause: "syntax_error", file: "app.rb", line: 2, command: /\Aruby -c .*app\.rb\z/, env: env
    end
  end

  # Rack reads it before Ruby does.
  def test_a_config_ru_in_another_encoding
    app = folder_with("config.ru" => "# text\nNAME = :caf\xE9\n#{WELL}")
    assert_diagnosed app, cause: "wrong_encoding", file: "config.ru", line: 2, remedy: /save the file in UTF-8/
  end

  def test_a_message_in_another_encoding
    app = folder_with("config.ru" => "require_relative 'app'\n#{WELL}",
                      "app.rb" => "# encoding: iso-8859-1\nrequire 'no_such_gem_caf\xE9'\n",
                      ".env" => "X=\xE9\n", "log/development.log" => "\xE9 logged\n")
    assert_diagnosed app, cause: "missing_gem", file: "app.rb", line: 2, command: /\Agem install no_such_gem_café\z/,
                          env: { "STRANGE" => "\xE9" }
  end

  def test_a_gemfile_in_another_encoding
    app = folder_with("config.ru" => WELL, "Gemfile" => "# caf\xE9\ngem 'rack'\ngem 'no_such_gem_at_all'\n")
    assert_diagnosed app, cause: "missing_gem", file: "Gemfile", line: 3, command: /\Abundle install\z/
  end

  def test_an_exception_whose_methods_raise
    app = folder_with("config.ru" => <<~RUBY)
      class Odd < KeyError
        %i[message to_s inspect cause detailed_message full_message class].each { |name| define_method(name) { |*| raise "no" } }
      end
      $stderr.write("caf\\xE9 was printed\\n")
      raise Odd
    RUBY
    server = assert_diagnosed(app, cause: "exception", file: "config.ru", line: 5)
    assert_equal "Odd", server.status.dig("diagnosis", "error", "class")
    assert_includes server.status.dig("diagnosis", "log_tail").join, "was printed"
  end

  def test_an_exception_with_a_very_large_message
    app = folder_with("config.ru" => "raise KeyError, %(\#{\"\\xE9\\\\\\\"\" * 30_000_000})\n")
    assert_diagnosed app, cause: "exception", file: "config.ru", line: 1
  end
end
