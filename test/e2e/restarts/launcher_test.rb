# frozen_string_literal: true

require "open3"
require_relative "../../support/keep_alive_load"
require_relative "../../support/own_gem"
require_relative "../../support/upgrade_test_case"

# Two versions of the gem, one installed after the other: what leads from the first to the second is the script that
# RubyGems makes for the command, whose path stays.
class LauncherTest < UpgradeTestCase
  OLD = "0.1.0"
  NEW = "0.2.0"

  def setup
    super
    @gems = OwnGem.new(folder_with)
    @gems.install(OLD)
  end

  def test_an_upgrade_leads_to_the_version_that_is_installed_by_then
    app = version(1)
    server = serve_by_gem(app)
    assert_equal OLD, version_of(server.pid)
    pid = nil
    load = KeepAliveLoad.during(server, allowed: [:closed]) do |clients|
      clients.more(3)
      @gems.install(NEW)
      version(2, app)
      pid = upgrade_by_gem(server)
      clients.more(3)
    end
    assert_empty load.failures
    assert_equal NEW, version_of(pid)
    assert_equal "2", answer(server)
    assert_equal NEW,
                 File.read("/proc/#{server.worker_pids.first}/maps")[%r{/highball-([\d.]+)/lib/\S*highball_ext\.so}, 1]
  end

  def test_a_command_says_it_where_the_launcher_has_gone
    server = serve_by_gem(version(1))
    FileUtils.mv(@gems.launcher, "#{@gems.launcher}.gone")
    assert_match(/cannot run #{@gems.launcher}: No such file/, upgrade_fails(server))
    FileUtils.mv("#{@gems.launcher}.gone", @gems.launcher)
    upgrade_by_gem(server)
  end

  def test_a_service_names_the_launcher
    unit, status = Open3.capture2e(@gems.environment, @gems.launcher, "config", "systemd", version(1))
    assert_predicate status, :success?, unit
    assert_match(/^ExecStart="?#{@gems.launcher}"? /, unit)
    assert_match(/^ExecReload="?#{@gems.launcher}"? restart /, unit)
    refute_includes unit, "/gems/highball-", "it names no version's folder"
  end

  # Another Ruby may have installed the new version; a named Ruby stays.
  def test_the_ruby_of_the_launcher_is_not_handed_on
    old = { "HIGHBALL_LAUNCHER_RUBY" => "/old/ruby" }
    seen = { {} => RbConfig.ruby, old.merge("HIGHBALL_RUBY" => "/old/ruby") => RbConfig.ruby,
             old.merge("HIGHBALL_RUBY" => "/my/ruby") => "/my/ruby" }
    @gems.replace_program("#!/bin/sh\necho \"$HIGHBALL_RUBY $HIGHBALL_LAUNCHER\"\n")
    seen.each do |given, ruby|
      output, = Open3.capture2e(@gems.environment.merge(given), @gems.launcher)
      assert_equal "#{ruby} #{@gems.launcher}\n", output
    end
  end

  private

  def serve_by_gem(app)
    options = %w[-b 127.0.0.1 -p 0 -e production -w 1 --drain-timeout 2s]
    serve(app, command: [@gems.launcher, "serve", *options, app], env: @gems.environment)
  end

  # The process that serves from then on.
  def upgrade_by_gem(server)
    environment = HighballServer::ENVIRONMENT.merge(@gems.environment)
    output, status = Open3.capture2e(environment, @gems.launcher, "upgrade", *server.which)
    assert_predicate status, :success?, "#{output}\n#{server.log}"
    output[/a new process serves: .* \(pid (\d+)\)/, 1].to_i
  end

  def version_of(pid) = File.readlink("/proc/#{pid}/exe")[%r{/gems/highball-([\d.]+)/}, 1]
end
