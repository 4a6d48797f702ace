# frozen_string_literal: true

require "open3"
require_relative "../../support/blog_with_system_tests"
require_relative "../../support/e2e_test"
require_relative "../../support/gem_source"
require_relative "../../support/linux_gem"
require_relative "../../support/mac"

# Highball on a Mac: the gem for it serves development by Puma. Ruby, RubyGems and Bundler take this machine for a Mac.
class DevelopmentServerTest < E2ETest
  include BlogWithSystemTests

  NOTE = "highball: development server: Puma; Highball itself runs on Linux\n"
  HELLO = <<~RUBY
    require "highball"
    run ->(env) { [200, { "content-type" => "text/plain" }, ["hello ", env["SERVER_SOFTWARE"]]] }
  RUBY
  # That a Mac needs for all that is in the next test, on a machine that does nothing else.
  WITHIN = 10 # seconds

  def setup
    super
    missing = Mac::NEEDED.select { |gem| Gem::Specification.stubs_for(gem).empty? }
    skip "not installed: #{missing.join(', ')}" unless missing.empty?
  end

  def test_from_bundle_install_to_a_system_test
    blog = blog_for_macs
    began = Deadline.now
    install(blog)
    assert_match(/^    highball \(0\.1\.0-arm64-darwin\)\n      puma \(>= 5\.0\)\n/, read(blog, "Gemfile.lock"))
    assert_blog_is_served(blog)
    output, ended = run_system_tests(blog, env: environment)
    assert_match(/^3 runs, \d+ assertions, 0 failures, 0 errors/, output)
    assert_predicate ended, :success?
    assert_equal 1, output.scan(NOTE).length, output
    output = succeeds(blog, "bundle", "exec", "highball", "doctor", "-p", "0")
    took = Deadline.now - began
    puts format("bundle install, rails server, a system test and the doctor: %.1f s", took)
    assert_match(/^ok       application: Rails \d.* and Puma \d/, output)
    assert_match(/^warning  platforms: .*no platform of Linux.*\n.*\n +command: bundle lock --add-platform /, output)
    assert_empty Mac.used_builders
    assert_operator took, :<, 12 * WITHIN, "this machine may be busy, and still that is too long"
  end

  def test_options
    folder = app("config/highball.toml" => "threads = \"2..4\"\nport = 1\nmemory_limit = \"300m\"\n",
                 "config.ru" => <<~RUBY)
                   NAMES = %i[min_threads max_threads early_hints workers environment]
                   run ->(env) { [200, {}, [NAMES.map { |name| env["puma.config"].options[name] }.join(" ")]] }
                 RUBY
    port = free_port
    server = start(folder, "highball", "-p", port.to_s, "--jit=off", "--early-hints", "on",
                   env: { "HIGHBALL_MAX_BODY" => "1m", "WEB_CONCURRENCY" => "3", "PORT" => "2",
                          "HIGHBALL_SERVER_USER" => nil })
    assert_equal "2 4 true 0 development", get(server, port).body
    assert_includes server.log, "#{NOTE}highball: only Linux has: --jit, WEB_CONCURRENCY, HIGHBALL_MAX_BODY, " \
                                "memory_limit in config/highball.toml\n"
    server.signal("INT")
    assert_predicate server.wait, :success?
  end

  # Its port counts unless an option, a variable of Highball or its file names another one.
  def test_pumas_configuration
    port = free_port
    other = free_port
    folder = app("config/puma.rb" => "port #{port}\nthreads 1, 2\n")
    assert_equal "hello ", get(start(folder, "highball", env: { "PORT" => other.to_s }), port).body[0, 6]
    assert_equal "hello ", get(start(folder, "highball", env: { "HIGHBALL_PORT" => other.to_s }), other).body[0, 6]
  end

  def test_a_folder_without_a_gemfile_and_an_application_in_one_file
    File.write(File.join(folder = folder_with, "app.rb"), "App = ->(_env) { [200, {}, ['in one file']] }\n")
    server = start("/", "highball", "-p", (port = free_port).to_s, File.join(folder, "app.rb"))
    assert_equal "in one file", get(server, port).body
  end

  # Bundler hides the gems that came with Highball.
  def test_a_gemfile_that_does_not_name_it
    folder = app("Gemfile" => "source 'https://rubygems.org'\ngem 'rack'\n",
                 "config.ru" => "run ->(env) { [200, {}, [env['SERVER_SOFTWARE']]] }\n")
    assert_match(/\Apuma /, get(start(folder, "highball", "-p", (port = free_port).to_s), port).body)
  end

  def test_rackup
    folder = app
    [["-s", "highball"], []].each do |options|
      server = start(folder, "bundle", "exec", "rackup", "-o", "127.0.0.1", "-p", (port = free_port).to_s, *options)
      assert_match(/\Ahello puma /, get(server, port).body)
      assert_equal 1, server.log.scan(NOTE).length, server.log
    end
  end

  # As on Linux: another server in the Gemfile stays the default.
  def test_puma_in_the_gemfile_stays_the_default
    folder = app("Gemfile" => "#{gemfile}gem 'puma'\n")
    server = start(folder, "bundle", "exec", "rackup", "-o", "127.0.0.1", "-p", (port = free_port).to_s)
    assert_match(/\Ahello puma /, get(server, port).body)
    refute_includes server.log, NOTE
  end

  def test_production_is_refused
    folder = app
    { %w[highball -e production] => {}, %w[highball] => { "RAILS_ENV" => "production" },
      %w[highball doctor -e production] => {},
      %w[bundle exec rackup -s highball -E production -o 127.0.0.1 -p 0] => {} }.each do |command, env|
      output = fails(folder, *command, env: env)
      assert_match(/^highball: production needs Linux, and this is arm64-darwin23: .*container/, output)
    end
  end

  def test_hooks
    folder = app("config/highball.rb" => <<~'RUBY')
      %w[before_fork after_fork before_worker_shutdown].each do |name|
        Highball.public_send(name) { |*number| warn "hook #{name} #{number}" }
      end
    RUBY
    server = start(folder, "highball", "-p", (port = free_port).to_s)
    get(server, port)
    server.signal("TERM")
    assert_predicate server.wait, :success?
    hooks = server.log.scan(/^hook (.+)/).flatten
    assert_equal ["before_fork []", "after_fork [1]", "before_worker_shutdown [1]"], hooks
  end

  def test_messages_are_not_sent
    script = "require 'highball'; 2.times { p Highball.publish('posts', 'new') }"
    output = succeeds(app, "bundle", "exec", "ruby", "-e", script)
    assert_equal "highball: Highball.publish sends messages on Linux only; this is arm64-darwin23\nnil\nnil\n", output
  end

  def test_the_cable_adapter_is_that_of_one_process
    blog = blog_for_macs
    install(blog)
    File.write(File.join(blog, "config/cable.yml"), "development:\n  adapter: highball\n")
    output = succeeds(blog, "ruby", "bin/rails", "runner", "p ActionCable.server.pubsub.class.name")
    assert_includes output, '"ActionCable::SubscriptionAdapter::Async"'
  end

  def test_what_a_command_says
    folder = app
    assert_match(/\Ahighball 0\.1\.0 \(arm64-darwin23: development server: Puma; /, succeeds(folder, *%w[highball -V]))
    help = succeeds(folder, "highball", "--help")
    assert_match(/Highball itself runs on Linux\. On arm64-darwin23\nthis command serves development by Puma\./, help)
    refute_match(/.{101}/, help)
    assert_match(/\Ahighball: status needs Linux, and this is arm64-darwin23: /, fails(folder, *%w[highball status]))
    assert_equal "highball: there is no option --prot; did you mean --port?\n", fails(folder, *%w[highball --prot 1])
    assert_match(/\Ahighball: only Linux serves several/, fails(folder, "highball", folder, "/"))
    File.write(File.join(folder, "highball.toml"), "thread = 1\n")
    assert_equal "highball: highball.toml: there is no option thread; did you mean threads?\n",
                 fails(folder, "highball")
  end

  # No other machine gets in without the password that only Linux asks for.
  def test_a_password_is_not_left_out
    folder = app("highball.toml" => "basic_auth = \"ann:secret\"\n")
    output = fails(folder, *%w[highball -b 0.0.0.0])
    assert_match(/\Ahighball: only Linux has basic_auth \(highball\.toml\), and 0\.0\.0\.0 would be open/, output)
    assert_equal 200, get(start(folder, "highball", "-p", (port = free_port).to_s), port).status
  end

  def test_what_keeps_it_from_booting
    folder = app("config.ru" => "require 'no_such_gem'\n")
    output = fails(folder, "highball")
    assert_match(/\Ahighball: the application did not boot\n\n    LoadError: .*no_such_gem\n\nat .*\.ru:1\n\n/, output)
    report = JSON.parse(fails(folder, *%w[highball doctor --json -p 0]))
    assert_equal %w[failed missing_gem], [report["state"], report.dig("diagnosis", "cause")]
    TCPServer.open("127.0.0.1", 0) do |taken|
      output = fails(app, "highball", "doctor", "-p", taken.addr[1].to_s)
      assert_match(/^FAILED   address_in_use: .*another program is using it\n.*\n +command: lsof /, output)
    end
  end

  # One lock file for developers' Macs and for servers, on which Puma is no dependency.
  def test_a_lock_file_for_both
    folder = app("Gemfile" => gemfile("file://#{source = folder_with}"))
    GemSource.publish(source, Mac.gem, LinuxGem.write(folder_with))
    succeeds(folder, *%w[bundle lock --add-platform x86_64-linux])
    lock = read(folder, "Gemfile.lock")
    assert_match(/^PLATFORMS\n  arm64-darwin(-23)?\n  x86_64-linux\n/, lock) # since Bundler 2.6 without a version
    of_mac = /\(0\.1\.0-arm64-darwin\)\n      puma .*\n      racc\n      rack .*\n      tomlrb .*\n/
    assert_match(/#{of_mac}    highball \(0\.1\.0-x86_64-linux\)\n      rack /, lock)
    script = "print Gem.loaded_specs.values.map(&:full_name).grep(/highball|puma/).join(' ')"
    { environment => "puma|highball-0.1.0-arm64-darwin", linux_environment => "highball-0.1.0-x86_64-linux" }
      .each do |env, gems|
      succeeds(folder, *%w[bundle install], env: env)
      loaded = succeeds(folder, "bundle", "exec", "ruby", "-e", script, env: env)
      assert_equal gems.split("|").sort, loaded.gsub(/puma-[\d.]+/, "puma").split.sort.reverse.sort
    end
    assert_equal lock, read(folder, "Gemfile.lock")
  end

  # As on systems for which there is no gem: nothing is built, and it says which server to add.
  def test_the_source_gem_builds_nothing_elsewhere
    gem = File.join(home = folder_with, "highball.gem")
    succeeds(HighballServer::ROOT, "gem", "build", "highball.gemspec", "--output", gem, env: linux_environment)
    tools = { "PATH" => ENV.fetch("PATH") } # `make`, which does nothing
    succeeds(home, *%w[gem install --local --no-document --bindir], "#{home}/bin", gem,
             env: Mac.environment(home).merge(tools))
    assert_empty Dir["#{home}/gems/highball-*/lib/highball/**/*.so"]
    version = succeeds(home, "#{home}/bin/highball", "-V", env: Mac.environment(home))
    assert_match(/\Ahighball 0\.1\.0 \(arm64-darwin23/, version)
  end

  private

  def environment = Mac.environment(Mac.home)
  def linux_environment = { "GEM_HOME" => (@linux_home ||= folder_with), "BUNDLER_VERSION" => Mac::BUNDLER }

  def gemfile(source = "https://rubygems.org")
    "source '#{source}'\ngem 'rack'\n#{"gem 'rackup'\n" if rackup?}gem 'highball'\n"
  end

  def rackup? = Gem::Specification.stubs_for("rackup").any?

  # A folder with a small application, the gem in its Gemfile, and these files.
  def app(files = {}) = folder_with({ "config.ru" => HELLO, "Gemfile" => gemfile, **files })

  # The blog with a Gemfile for a Mac. The gem is in vendor/cache, as there is no server to download it from.
  def blog_for_macs
    blog = copy_of_example("blog")
    gems = %w[rails sqlite3 highball].map { |name| "gem '#{name}'\n" }.join
    File.write(File.join(blog, "Gemfile"), "source 'https://rubygems.org'\n#{gems}#{GEMFILE_GROUP}")
    File.write(File.join(blog, "config/boot.rb"), BundledBlog::BOOT)
    application = File.join(blog, "config/application.rb")
    File.write(application, File.read(application).sub("\nmodule Blog", "\nBundler.require(*Rails.groups)\n\\0"))
    FileUtils.mkdir_p(File.join(blog, "vendor/cache"))
    FileUtils.cp(Mac.gem, File.join(blog, "vendor/cache"))
    add_system_tests(blog)
  end

  def install(blog) = succeeds(blog, *%w[bundle install --local --no-cache])

  def assert_blog_is_served(blog)
    server = start(blog, "ruby", "bin/rails", "server", "-b", "127.0.0.1", "-p", (port = free_port).to_s)
    assert_includes get(server, port).body.force_encoding("UTF-8"), "Nothing here yet"
    assert_match(/^=> Booting Highball\n/, server.log)
    assert_equal 1, server.log.scan(NOTE).length, server.log
    server.signal("INT")
    server.wait
  end

  def read(folder, name) = File.read(File.join(folder, name))

  # Starts a command in this folder, and does not wait for it.
  def start(folder, *command, env: {})
    HighballServer.new(folder, command: command, env: environment.merge(env)).tap { |server| @servers << server }
  end

  # What the server answers, when it does.
  def get(server, port)
    wait_for("an answer", within: 60) do
      raise "it ended: #{server.log}" unless server.running?

      HttpConnection.tcp(port).get("/", { "Host" => "127.0.0.1", "Accept" => "text/html" })
    rescue SystemCallError, EOFError
      nil
    end
  end

  def succeeds(folder, *command, **options)
    output, ended = run_command(folder, *command, **options)
    assert_predicate ended, :success?, output
    output
  end

  def fails(folder, *command, **options)
    output, ended = run_command(folder, *command, **options)
    refute_predicate ended, :success?, output
    output
  end

  def run_command(folder, *command, env: {})
    environment = env.key?("GEM_HOME") ? env : self.environment.merge(env)
    run_in(folder, "timeout", "60", *command, env: environment)
  end
end
