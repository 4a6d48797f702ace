# frozen_string_literal: true

require_relative "../../support/e2e_test"

# `highball init`: what it writes, and what it leaves alone.
class InitTest < E2ETest
  FILES = %w[Procfile Procfile.dev config/highball.service config/highball.toml].freeze
  RACK = { "config.ru" => "run ->(_env) { [200, {}, ['it runs']] }\n" }.freeze
  # The end of the Dockerfile that Rails 8 makes.
  DOCKERFILE = "EXPOSE 80\nCMD [\"./bin/thrust\", \"./bin/rails\", \"server\"]\n"

  def test_a_rails_application
    blog = copy_of_example("blog")
    File.write(File.join(blog, "Gemfile"), "gem 'rails'\n")
    File.write(File.join(blog, "Dockerfile"), DOCKERFILE)
    output = init(blog)
    assert_match(%r{^left alone +Dockerfile .*\n +EXPOSE 3000\n +CMD \["\./bin/rails", "server"\]$}, output)
    FILES.each { |name| assert_match(/^wrote +#{name} /, output) }
    assert_equal "web: bundle exec highball\n", read(blog, "Procfile")
    assert_equal "web: bin/rails server\n", read(blog, "Procfile.dev")
    assert_match(/^ExecStart=.*highball.* serve /, read(blog, "config/highball.service"))
    FileUtils.rm(File.join(blog, "Gemfile"))
    assert_equal 200, serve(blog).get("/").status
  end

  # Every line of the configuration may be put to use.
  def test_its_configuration_is_one
    app = folder_with(RACK)
    init(app)
    path = File.join(app, "config/highball.toml")
    options = File.read(path).scan(/^#(\w+ = .*)$/).flatten
    assert_operator options.length, :>=, 8
    File.write(path, options.join("\n"))
    output = highball("config", "nginx", app)
    assert_match(/^\s*client_max_body_size 104857600;/, output)
  end

  def test_the_line_of_the_procfile_serves
    app = folder_with(RACK)
    init(app)
    command = read(app, "Procfile")[/\Aweb: (.*)$/, 1].sub("highball", HighballServer::BINARY)
    server = serve(app, command: ["sh", "-c", "exec #{command}"], env: { "PORT" => "0", "BINDING" => "127.0.0.1" })
    assert_equal "it runs", server.get("/").body
  end

  def test_nothing_is_overwritten
    there = { "Procfile" => "web: bin/rails server\nworker: bin/jobs\n", "Procfile.dev" => "web: highball\n",
              "config/highball.toml" => "workers = 2\n", "config/deploy.yml" => "service: x\n",
              "Dockerfile" => DOCKERFILE }
    app = folder_with(RACK.merge(there))
    output = init(app)
    there.each { |name, text| assert_equal text, read(app, name) }
    assert_match(/^left alone +Procfile +it is there already; change it .*:\n +web: highball$/, output)
    assert_match(/^left alone +Procfile\.dev +it is there already$/, output)
    assert_match(/^left alone +Dockerfile .*\n +EXPOSE 3000\n +CMD \["highball"\]$/, output)
    assert_match(%r{^left alone +config/deploy\.yml .*\n +proxy:\n +app_port: 3000$}, output)
    assert_equal output.sub(/^wrote.*\n/, ""), init(app).sub(%r{^left alone +config/highball\.service.*\n}, "")
  end

  def test_files_of_other_servers
    files = { "Passengerfile.json" => "{}", "config/unicorn.rb" => "worker_processes 2\n", "Caddyfile" => "",
              "render.yaml" => "    startCommand: bundle exec puma\n", "config/puma.rb" => "threads 5\n",
              "config/puma/staging.rb" => "threads 4\n",
              "Procfile" => "web: bundle exec passenger start\n" }
    output = init(folder_with(RACK.merge(files)))
    assert_match(%r{^left alone +Passengerfile\.json +it is Passenger's, .*docs/migrating/passenger\.md}, output)
    assert_match(%r{^left alone +config/unicorn\.rb +it is Unicorn's, .*docs/migrating/unicorn-pitchfork\.md}, output)
    assert_match(/^left alone +Caddyfile +it is Caddy's/, output)
    assert_match(/^left alone +render\.yaml +it starts Puma, and not Highball/, output)
    assert_match(%r{^left alone +config/puma\.rb +it counts for what config/highball\.toml does not set}, output)
    assert_match(%r{^left alone +config/puma/staging\.rb +it counts}, output)
    assert_equal 1, output.scan("Procfile ").length, output
    output.scan(%r{docs/[\w/-]+\.md}).each { |page| assert_path_exists File.expand_path("../../../#{page}", __dir__) }
  end

  def test_a_dry_run_writes_nothing
    app = folder_with(RACK)
    output = init("--dry-run", app)
    FILES.each { |name| assert_match(/^would write +#{name} /, output) }
    assert_equal RACK.keys, Dir.children(app)
  end

  def test_no_link_is_followed
    elsewhere = folder_with("Procfile" => "mine\n")
    app = folder_with(RACK)
    File.symlink(elsewhere, File.join(app, "config"))
    File.symlink(File.join(elsewhere, "not-there"), File.join(app, "Procfile"))
    File.mkfifo(File.join(app, "Dockerfile"))
    output = init(app)
    assert_equal ["Procfile"], Dir.children(elsewhere)
    assert_match(/^left alone +Procfile +it is a symbolic link$/, output)
    assert_match(%r{^left alone +config/highball\.toml +config is a link or no folder}, output)
    assert_match(/^left alone +Dockerfile +it is not a file$/, output)
  end

  def test_root_does_not_write_for_others
    skip "needs root" unless Process.uid.zero?
    app = folder_with(RACK)
    FileUtils.chown_R(65_534, 65_534, app)
    output = highball_fails("init", app)
    assert_match(/belongs to .*: run this as its owner/, output)
    assert_equal RACK.keys, Dir.children(app)
  end

  def test_no_application
    output = highball_fails("init", folder_with("notes.txt" => ""))
    assert_match(/there is no application in/, output)
  end

  private

  def init(*arguments)
    highball("init", *arguments)
  end

  def read(folder, name) = File.read(File.join(folder, name))
end
