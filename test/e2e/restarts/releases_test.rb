# frozen_string_literal: true

# marks: long

ENV["MT_CPU"] ||= "3" # its tests mostly wait

require "json"
require_relative "../../support/upgrade_test_case"

# Releases in separate folders, and the link `current`, as Capistrano makes them: however the application was named, the
# path lives on as it was given, and each restart, hot restart and boot looks up what it leads to.
class ReleasesTest < UpgradeTestCase
  parallelize_me!

  OPTIONS = %w[-b 127.0.0.1 -p 0 -e production -w 1].freeze
  # Where the shell is, and what it starts there. %s stands for the application's place, without and with the link.
  WAYS = {
    in_the_link: ["current", "%<highball>s"],
    in_the_link_by_a_dot: ["current", "%<highball>s ."],
    in_a_folder_below: ["current/config", "%<highball>s .."],
    beside_the_link: [".", "%<highball>s current"],
    by_way_of_the_parent: ["releases", "%<highball>s ../shared/.././current/"],
    by_the_full_path: ["shared", "%<highball>s %<place>s/current"],
    by_a_file: ["current", "%<highball>s config.ru"],
    by_a_configuration_in_the_link: ["shared", "%<highball>s -c ../current/named.toml"],
    by_a_configuration_elsewhere: ["shared", "%<highball>s -c highball.toml"],
    by_a_variable: ["shared", "HIGHBALL_CONFIG=../current/named.toml %<highball>s"],
    by_the_configuration_in_it: ["current", "%<highball>s", { "config/highball.toml" => "threads = 2\n" }],
    by_the_directory_of_puma: ["releases/1", "%<highball>s", { "config/puma.rb" => "directory '%<place>s/current'\n" }],
    by_a_relative_directory: ["releases/1", "%<highball>s", { "config/puma.rb" => "directory '../../x/../current'" }],
    by_a_directory_elsewhere: ["shared", "%<highball>s -C puma.rb"],
    by_rackup: ["current", "rackup -s highball -E production -o 127.0.0.1 -p %<port>s -O workers=1"],
    by_rackup_and_file: ["current", "rackup -s highball -E production -o 127.0.0.1 -p %<port>s -O workers=1 config.ru"]
  }.freeze
  # What leads from the old processes to new ones does not depend on the way.
  LONG_LIVES = %i[in_the_link by_the_configuration_in_it by_a_directory_elsewhere].freeze

  def setup
    super
    @place = File.realpath(folder_with("x/y" => "", "shared/puma.rb" => "directory '../current'\n",
                                       "shared/highball.toml" => "[[app]]\npath = '../current'\n"))
    @current = File.join(@place, "current")
    @more = {}
  end

  WAYS.each do |name, (folder, command, more)|
    define_method("test_#{name}") do
      if ENV["HIGHBALL_SERVER_USER"] && (more || command.include?("puma"))
        skip "the server is another user than the application's owner"
      end
      @more = more.to_h.transform_values { |text| format(text, place: @place) }
      server = start_in(folder, command)
      restarts_and_upgrades(server)
      outlives_its_processes(server) if LONG_LIVES.include?(name)
    end
  end

  # Nothing has led to the new release yet, and the served one has gone.
  def test_a_boot_leads_to_the_new_release_where_the_old_one_has_gone
    release(1)
    server = serve(@current, workers: 2)
    release(2)
    FileUtils.rm_rf(path_of(1))
    workers = server.worker_pids
    HighballServer.kill(workers.first)
    wait_for("another worker of the mold", within: 60) do
      serving(server).length == 2 && (serving(server) - workers).any?
    end
    assert_equal "1", answer(server)
    [server.mold_pid, *server.worker_pids].each { |pid| HighballServer.kill(pid) }
    wait_for("version 2", within: 60) { answer(server) == "2" }
    assert_match(%r{folder was removed: serving another one.*removed\S*releases/1.*serving\S*releases/2}m, server.log)
    restart(server)
    assert_equal "2", answer(server)
  end

  # As shells, Puma and Unicorn do.
  def test_pwd_counts_only_where_it_leads_here
    release(1)
    FileUtils.cp_r(path_of(1), File.join(@place, "other"))
    File.write(File.join(@place, "other/version"), "other")
    ["#{@place}/other", "#{@place}/missing", "current", "#{@current}/../1", "", "/"].each do |wrong|
      server = HighballServer.start(path_of(1), command: [HighballServer::BINARY, "serve", *OPTIONS],
                                                env: { "PWD" => wrong, "HIGHBALL_STARTED_IN" => "1:1:#{@place}/other" })
      @servers << server
      assert_equal ["1", path_of(1)], [answer(server), server.status["link"]], wrong
    end
  end

  # What the application sees is what a shell would show it.
  def test_the_application_sees_the_path_as_it_was_given
    release(1, "run ->(_) { [200, {}, [[ENV['PWD'], Dir.pwd, ENV['HIGHBALL_STARTED_IN'].inspect].join(' ')]] }")
    server = start_in("current", "%<highball>s", first: false)
    assert_equal "#{@current} #{path_of(1)} nil", server.get("/").body
  end

  # Relative paths of a configuration are looked up each time as well.
  def test_files_of_the_configuration
    settings = "pidfile = 'tmp/pid'\naccess_log = 'log/access.log'\n"
    @more = { "config/highball.toml" => settings, "tmp/x" => "", "log/x" => "" }
    release(1)
    server = start_in("current", "%<highball>s", first: false)
    assert_equal server.pid, File.read(File.join(path_of(1), "tmp/pid")).to_i
    release(2)
    FileUtils.rm_rf(path_of(1))
    server.signal("HUP") # as logrotate does
    log = File.join(path_of(2), "log/access.log")
    wait_for("the log in the new release", within: 20) { answer(server) && File.exist?(log) && !File.empty?(log) }
    pid = upgrade(server)
    wait_for("the new pid file", within: 20) { File.exist?(File.join(path_of(2), "tmp/pid")) }
    assert_equal pid, File.read(File.join(path_of(2), "tmp/pid")).to_i
  end

  private

  def path_of(number) = File.join(@place, "releases", number.to_s)

  # A new release, to which the link leads then.
  def release(number, config = CONFIG)
    FileUtils.mkdir_p(File.join(path_of(number), "config"))
    version(number, path_of(number), config)
    { "named.toml" => "[[app]]\npath = '.'\n" }.merge(@more).each do |name, text|
      FileUtils.mkdir_p(File.dirname(File.join(path_of(number), name)))
      File.write(File.join(path_of(number), name), text)
    end
    FileUtils.ln_sf("releases/#{number}", "#{@current}.new")
    File.rename("#{@current}.new", @current)
  end

  # The shell names the folder by the way that it came.
  def start_in(folder, command, first: true)
    release(1) if first
    options = OPTIONS.join(" ")
    command = format(command, highball: "#{HighballServer::BINARY} serve #{options}", place: @place, port: free_port,
                              options: options)
    script = "cd #{folder} && exec env #{command}"
    lib = { "RUBYLIB" => File.join(HighballServer::ROOT, "lib") }
    serve(@place, command: ["sh", "-c", "cd '#{@place}' && #{script}"], env: lib)
  end

  def restarts_and_upgrades(server)
    assert_equal ["1", @current], [answer(server), server.status["link"]]
    assert_found_in([path_of(1), @current], server)
    release(2)
    assert_found_in([path_of(1), path_of(2), @current], server)
    restart(server)
    assert_equal ["2", path_of(2)], [answer(server), server.status["app"]]
    FileUtils.rm_rf(path_of(1))
    release(3)
    pid = upgrade(server)
    assert_equal ["3", pid, @current], [answer(server), *server.status.values_at("pid", "link")]
    assert_found_in([path_of(3), @current], server)
  end

  def outlives_its_processes(server)
    FileUtils.rm_rf(path_of(2))
    replaced(server) { server.worker_pids }
    replaced(server) { [server.mold_pid, *server.worker_pids] }
    assert_equal ["3", path_of(3)], [answer(server), server.status["app"]]
    release(4)
    FileUtils.touch(File.join(@current, "tmp/restart.txt").tap { |file| FileUtils.mkdir_p(File.dirname(file)) })
    wait_for("version 4", within: 60) { answer(server) == "4" }
    assert_equal @current, server.status["link"]
    assert_found_in([path_of(4), @current], server)
  end

  # Kills these processes, and waits until others serve.
  def replaced(server)
    before = yield
    before.each { |pid| HighballServer.kill(pid) }
    wait_for("another worker", within: 60) { serving(server).any? && (serving(server) & before).empty? }
    assert_match(/\A\d/, answer(server))
  end

  def serving(server)
    server.status["workers"].select { |worker| worker["state"] == "serving" }.map { |worker| worker["pid"] }
  end

  # Commands find the server by the folder they are in, whether they came by the link or not.
  def assert_found_in(folders, server)
    folders.each do |folder|
      script = "cd '#{folder}' && exec \"$0\" status --json ."
      output, ended = Open3.capture2e(HighballServer::ENVIRONMENT, "sh", "-c", script, HighballServer::BINARY)
      assert_predicate ended, :success?, "in #{folder}: #{output}"
      assert_equal server.port, JSON.parse(output)["ports"].first, folder
    end
  end
end
