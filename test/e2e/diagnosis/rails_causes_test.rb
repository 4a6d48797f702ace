# frozen_string_literal: true

# marks: long

require "cgi"
require "open3"
require_relative "../../support/broken_app"
require_relative "../../support/broken_blog"

# Why Rails applications do not boot. (Missing databases and pending migrations are in remedies_test.rb.)
class RailsCausesTest < BrokenAppTest
  include BrokenBlog

  def test_no_database_yml
    blog = blog_with("ActiveRecord::Base.connection\n")
    FileUtils.rm(File.join(blog, "config/database.yml"))
    server = assert_diagnosed(blog, cause: "database_config", file: "config/database.yml",
                                    command: %r{> config/database\.yml\z})
    run_command(server, blog)
    # It boots; errors about the empty database are left to Rails.
    refute_equal 503, server.get("/", HTML, within: 60).status
    assert_equal "serving", server.status["phase"]
  end

  def test_a_database_yml_that_is_none
    blog = blog_with("ActiveRecord::Base.connection\n")
    File.write(File.join(blog, "config/database.yml"), "development:\n  adapter: sqlite3\n database: x\n")
    assert_diagnosed blog, cause: "database_config", file: "config/database.yml", remedy: /database\.yml/,
                           command: /database\.yml/
  end

  def test_a_database_that_is_out_of_reach
    blog = blog_with("ActiveRecord::Base.connection\n")
    assert_diagnosed blog, cause: /\Adatabase_(?:down|missing)\z/, remedy: /database/, command: anything,
                           env: { "DATABASE_URL" => "sqlite3:/proc/nowhere/blog.sqlite3" }
  end

  def test_syntax_errors_in_routes_and_initializers
    long
    ["config/routes.rb", "config/initializers/broken.rb"].each do |file|
      blog = copy_of_example("blog")
      path = File.join(blog, file)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, "class Broken\n  def x(\n  end\nend\n")
      server = assert_diagnosed(blog, cause: "syntax_error", file: file, line: 3, command: /\Aruby -c .*#{file}\z/)
      FileUtils.cp(File.join(HighballServer::EXAMPLES, "blog/config/routes.rb"), path)
      File.write(path, "") if file.include?("initializers")
      assert_equal 200, server.get("/", HTML, within: 60).status
    end
  end

  def test_no_secret_key_base
    blog = copy_of_example("blog")
    production = File.join(blog, "config/environments/production.rb")
    File.write(production, "Rails.application.configure { config.eager_load = true }\n")
    output = highball_fails("serve", "-e", "production", "-b", "127.0.0.1", "-p", "0", blog)
    assert_match(/cause=missing_secret_key_base/, output)
    assert_match(/command: export SECRET_KEY_BASE=/, output)
  end

  def test_no_master_key
    blog = copy_of_example("blog")
    application = File.join(blog, "config/application.rb")
    File.write(application, File.read(application).sub("    config.active_storage.service",
                                                       "    config.require_master_key = true\n\\0"))
    File.write(File.join(blog, "config/credentials.yml.enc"), "garbage--x--y")
    assert_diagnosed blog, cause: "missing_master_key", remedy: %r{config/master\.key},
                           command: anything
  end

  private

  def anything = //

  def run_command(server, blog)
    page = CGI.unescapeHTML(server.get("/", HTML, within: 60).body.force_encoding("UTF-8"))
    command = page[%r{<pre class="command"><code>(.*?)</code>}m, 1]
    output, ended = Open3.capture2e(HighballServer::ENVIRONMENT, "sh", "-c", command, chdir: blog)
    assert_predicate ended, :success?, output
  end
end
