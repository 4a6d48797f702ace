# frozen_string_literal: true

# marks: few, debian13 (the writer of the cache has the lowest priority)

require_relative "../../support/e2e_test"

# Compiled files are kept from one boot to the next, in a folder of the application's user.
class BootCacheTest < E2ETest
  def setup
    super
    @cache = Dir.mktmpdir
    @env = { "CACHE_DIRECTORY" => nil, "XDG_CACHE_HOME" => @cache }
  end

  def teardown
    super
    FileUtils.rm_rf(@cache)
  end

  def test_a_rails_application_boots_from_it_after_the_first_time
    server = serve(copy_of_example("blog"), env: @env)
    page = server.get("/posts").status
    assert_match(/\A\d+ of \d{3,} files\z/, cache(server)["name"]) # some were compiled ahead, if there was a free CPU
    wait_for("the cache") { files.length >= all(server) * 0.95 && writers.empty? }
    assert_empty Dir.glob(File.join(@cache, "**/*")).select { |path| File.file?(path) } - files
    server.signal("USR1")
    wait_for("the restart") { server.status["generation"] == 2 }
    assert_operator found(server), :>=, all(server) * 0.95, cache(server)
    assert_equal page, server.get("/posts").status
    assert_match(/booted .*cache="\d{3,} of \d+ files"/, server.log)
  end

  def test_a_server_that_stops_does_not_wait_for_the_writer
    server = serve(copy_of_example("blog"), env: @env)
    wait_for("the writer") { writers.any? }
    server.stop
    wait_for("its end") { writers.empty? }
  end

  def test_processes_do_not_know_of_it
    app = folder_with("config.ru" => "run ->(_env) { [200, {}, [ENV.keys.grep(/CACHE$/).join(' ')]] }\n",
                      "config/highball.rb" => "")
    assert_equal "", serve(app, env: @env.merge("HIGHBALL_TEST_CACHE" => nil)).get("/").body
  end

  def test_it_can_be_off
    app = folder_with("config.ru" => "require_relative 'lib/a'\nrun ->(_env) { [200, {}, []] }\n", "lib/a.rb" => "")
    assert_equal "boot_cache = off", cache(serve(app, "--boot-cache", "off", env: @env))["off"]
    server = serve(app, env: @env, environment: "staging")
    assert_equal "the environment is staging", cache(server)["off"]
    File.chmod(0o777, @cache)
    assert_equal "others can write to #{File.realpath(@cache)}", cache(serve(app, env: @env))["off"]
    assert_empty files
  end

  private

  def cache(server) = server.status["boot_cache"]
  def found(server) = cache(server)["name"][/\d+/].to_i
  def all(server) = cache(server)["name"][/of (\d+)/, 1].to_i
  def files = Dir.glob(File.join(@cache, "highball/boot/*/**/*.rb"))

  # Processes that write to this cache.
  def writers = ProcessFacts.with_command("boot_cache/writer.rb", @cache)
end
