# frozen_string_literal: true

require "json"
require "open3"
require "rubygems/package"
require_relative "../support/clean_debian_test_case"
require_relative "../support/debian_package"

# The package of Debian, installed by apt on a Debian 12 and a Debian 13 that have systemd's programs, a Ruby, and
# nothing to build with. No systemd runs there: servers are started with the unit's command.
class DebianPackageTest < CleanDebianTestCase
  RELEASES = %w[bookworm trixie].freeze
  UNIT = "/lib/systemd/system/highball.service"
  CONFIGURATION = "etc/highball/highball.toml"
  APP = "require 'etc'\nrun ->(_env) { [200, {}, [\"%<name>s of \#{Etc.getpwuid.name}\"]] }\n"
  # What packages leave behind on purpose, or what is dpkg's and systemd's.
  KEPT = %r{\A/(?:
    var/(?:lib/(?:dpkg|systemd|apt)|log/(?:apt|dpkg\.log|alternatives\.log)|cache)(?:/|\z)|
    etc/(?:passwd|group|shadow|gshadow|subuid|subgid)-?\z|etc/\.pwd\.lock\z|etc/\.updated\z|var/\.updated\z|
    tmp/|proc/|dev/
  )}x
  # systemctl where no systemd runs: one service, of which the process is noted in a file.
  SYSTEMCTL = <<~SH
    #!/bin/sh
    echo "$*" >> /tmp/systemctl.log
    case $1 in
      list-units) echo "other.service loaded active running x"; echo "highball.service loaded active running x" ;;
      show) if [ "$4" = highball.service ]; then cat /tmp/main-pid; else echo 1; fi ;;
      kill) kill -s "${3#--signal=}" "$(cat /tmp/main-pid)" ;;
      is-enabled) exit 1 ;;
    esac
  SH

  # Packages by their revision, for all tests of this process.
  BUILT = Hash.new do |built, revision|
    folder = File.join(FOLDER, revision.to_s)
    built[revision] = BuiltDebianPackage.build(FileUtils.mkdir_p(folder).first, revision: revision)
  end
  FOLDER = Dir.mktmpdir("highball-deb")
  Minitest.after_run { FileUtils.rm_rf(FOLDER) }

  RELEASES.each do |release|
    define_method("test_it_serves_on_a_#{release}") do
      debian = debian(release)
      assert_includes install(debian), "name your applications in /etc/highball/highball.toml"
      assert_match(/\Ahighball 0\.1\.0/, debian.run("highball", "--version"))
      server = serve_in(debian, { "blog" => "www-data" })
      assert_equal "blog of www-data", server.get("/").body
      assert_equal "highball", user_of(debian, server.server_pid)
      assert_equal "serving", status(debian)["phase"]
      log = debian.path("var/log/highball/access.log")
      wait_for("the access log") { File.exist?(log) && File.read(log).include?("GET / HTTP/1.1") }
    end

    define_method("test_systemd_and_logrotate_understand_its_files_on_a_#{release}") do
      debian = debian(release)
      install(debian)
      output = debian.run("systemd-analyze", "verify", "--man=no", UNIT)
      assert_empty output.lines.grep(/highball/)
      debian.run("logrotate", "--debug", "/etc/logrotate.d/highball")
      complete = ". /usr/share/bash-completion/completions/highball; complete -p highball"
      assert_includes debian.run("bash", "-c", complete), "-F _highball"
      manual = debian.run("zcat", "/usr/share/man/man1/highball-serve.1.gz")
      assert_equal File.read(File.join(HighballServer::ROOT, "share/man/man1/highball-serve.1")), manual
      assert_match(/\Ahighball:x:\d+:\d+:.*:\S+nologin\Z/, debian.run("getent", "passwd", "highball"))
    end

    define_method("test_purging_it_leaves_nothing_on_a_#{release}") do
      debian = debian(release)
      before = files(debian)
      install(debian)
      File.write(debian.path("var/log/highball/access.log"), "")
      File.write(debian.path("etc/highball/mine.toml"), "")
      added = files(debian) - before
      %w[/usr/bin/highball /etc/highball/highball.toml /var/spool/highball /var/log/highball].each do |path|
        assert_includes added, path
      end
      apt(debian, "remove", "highball")
      assert_includes files(debian), "/etc/highball/highball.toml"
      apt(debian, "purge", "highball")
      assert_equal %w[/etc/highball /etc/highball/mine.toml], (files(debian) - before).sort
    end
  end

  def test_an_upgrade_replaces_a_running_server_without_losing_a_request
    debian = debian("trixie")
    install(debian)
    server = serve_in(debian, { "blog" => "www-data", "shop" => "games" })
    before = status(debian)["pid"]
    answers = while_asking(server, "Host" => "shop.localhost") do
      upgrade(debian, server)
      wait_for("the new server", within: 60) { ![before, nil].include?(status(debian)["pid"]) }
    end
    assert_equal ["200 shop of games"], answers.uniq
    assert_operator answers.length, :>, 10
    calls = File.read(debian.path("tmp/systemctl.log"))
    assert_includes calls, "kill --kill-whom=main --signal=USR2 highball.service"
    refute_match(/^(?:stop|restart|try-restart)/, calls)
    refute_includes File.readlink("/proc/#{server.server_pid(status(debian)['pid'])}/exe"), "deleted"
  end

  # Settings that one application and several have in common stay the same. (The package's applications may get limits
  # that the kernel keeps, at any time.)
  def test_the_service_is_like_the_printed_unit
    printed, ended = HighballServer.run("config", "systemd", folder_with("config.ru" => ""))
    assert_predicate ended, :success?, printed
    differ = %w[Description Documentation ExecStart ExecReload TimeoutStartSec PrivateTmp Delegate]
    common = settings(unit).reject { |setting| differ.include?(setting.first) }
    assert_operator common.length, :>, 12
    assert_empty common - settings(printed)
  end

  def test_lintian_finds_nothing
    skip "lintian is not installed" unless system("lintian", "--version", out: File::NULL)
    output, status = Open3.capture2e("lintian", "--fail-on", "error,warning", package)
    assert_predicate status, :success?, output
    assert_empty output.lines.grep(/^[EW]:/)
  end

  def test_it_is_the_same_when_it_is_built_again
    very_long
    again = BuiltDebianPackage.build(folder_with)
    assert_equal Digest::SHA256.file(package).hexdigest, Digest::SHA256.file(again).hexdigest
  end

  def test_it_needs_no_library_that_is_not_in_libc6
    folder = folder_with
    assert system("dpkg-deb", "--extract", package, folder)
    programs = Dir["#{folder}/usr/lib/highball/{libexec/highball,lib/highball/**/*.so}"]
    assert_equal native_gem_programs, programs.map { |file| file.delete_prefix("#{folder}/usr/lib/highball/") }.sort
    needed = programs.flat_map { |file| `readelf --dynamic --wide #{file}`.scan(/\(NEEDED\).*\[(.+)\]/).flatten }
    assert_empty needed.uniq.grep_v(/\A(?:libc|libm|libpthread|libdl|librt|ld-linux-x86-64)\.so\.\d\z/)
  end

  private

  # The binary, and an extension for each Ruby.
  def native_gem_programs = Gem::Package.new(NativeGem.path).contents.grep(%r{\Alibexec/|\.so\z}).sort

  def package(revision = 1) = BUILT[revision]
  def unit = File.read(File.join(HighballServer::ROOT, "packaging/debian/highball.service"))
  def settings(unit) = unit.scan(/^([A-Z]\w+)=(.*)$/)

  def debian(release) = for_this_test(CleanDebian.new(release, packages: %w[systemd logrotate]))

  def apt(debian, *words)
    debian.run("apt-get", "--yes", "--no-install-recommends", *words, env: { "DEBIAN_FRONTEND" => "noninteractive" })
  end

  def install(debian, package = self.package)
    FileUtils.cp(package, debian.path("tmp"))
    apt(debian, "install", "/tmp/#{File.basename(package)}")
  end

  # Starts the unit's command on these applications, each of a user. The first is the default.
  def serve_in(debian, apps)
    configure(debian, apps)
    command = unit[/^ExecStart=(.+)$/, 1].split
    serve(debian.path("srv"), command: debian.command(*command), env: CleanDebian::ENVIRONMENT)
  end

  def configure(debian, apps)
    tables = apps.map do |name, user|
      folder = debian.path("srv/#{name}")
      FileUtils.mkdir_p(folder)
      File.write("#{folder}/config.ru", format(APP, name: name))
      FileUtils.chown_R(debian.run("id", "-u", user).to_i, nil, folder)
      "[[app]]\npath = \"/srv/#{name}\"\n"
    end
    file = debian.path(CONFIGURATION)
    text = File.read(file).sub(/^bind = .*/, 'bind = "127.0.0.1:0"')
    File.write(file, "#{text}\n#{tables.join}")
  end

  # Installs the next revision beside the running server, where a systemd seems to run.
  def upgrade(debian, server)
    FileUtils.mkdir_p(debian.path("run/systemd/system"))
    File.write(debian.path("usr/local/bin/systemctl"), SYSTEMCTL)
    File.chmod(0o755, debian.path("usr/local/bin/systemctl"))
    File.write(debian.path("tmp/main-pid"), server.pid.to_s)
    FileUtils.cp(package(2), debian.path("tmp"))
    output = debian.run("dpkg", "--install", "/tmp/#{File.basename(package(2))}")
    assert_includes output, "hot restart of highball.service"
  end

  def status(debian)
    JSON.parse(debian.run("highball", "status", "--json"))
  rescue CleanDebian::Failed
    {}
  end

  def user_of(debian, pid)
    uid = File.read("/proc/#{pid}/status")[/^Uid:\s+(\d+)/, 1]
    debian.run("getent", "passwd", uid)[/\A[^:]+/]
  end

  # All answers to requests that are sent, one after the other, while the block runs.
  def while_asking(server, headers)
    done = false
    asking = Thread.new do
      answers = []
      until done
        answer = server.get("/", headers)
        answers << "#{answer.status} #{answer.body}"
      end
      answers
    end
    yield
    done = true
    asking.value
  ensure
    done = true
  end

  # Every file of the package in there.
  def files(debian)
    debian.run("find", "/", "-xdev", "-print").lines(chomp: true).grep_v(KEPT)
  end
end
