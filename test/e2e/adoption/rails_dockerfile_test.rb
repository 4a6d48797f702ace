# frozen_string_literal: true

require_relative "../../support/bundled_blog"
require_relative "../../support/documents"
require_relative "../../support/e2e_test"

# The change that docs/deploying/docker.md names for the Dockerfile of Rails 8: it applies, and what the container then
# runs is Highball, behind Rails' entrypoint.
class RailsDockerfileTest < E2ETest
  include BundledBlog

  # The lines that count, as `rails new` writes them in Rails 8.
  DOCKERFILE = <<~DOCKERFILE
    FROM base
    USER 1000:1000
    COPY --chown=rails:rails --from=build /rails /rails
    ENTRYPOINT ["/rails/bin/docker-entrypoint"]
    EXPOSE 80
    CMD ["./bin/thrust", "./bin/rails", "server"]
  DOCKERFILE
  # It does the same as the entrypoint of Rails: for the server's command alone, it prepares the database.
  ENTRYPOINT = <<~'SH'
    #!/bin/bash -e
    [[ "$*" != *"./bin/rails server" ]] || ./bin/rails db:prepare
    exec "$@"
  SH

  def test_its_command_prepares_the_database_and_becomes_highball
    blog = image
    server = run_image(blog, "RAILS_ENV" => "production", "PORT" => "0", "BINDING" => "127.0.0.1")
    assert_path_exists File.join(blog, "db/production.sqlite3")
    assert_equal 200, server.get("/").status
    assert_equal File.realpath(HighballServer::BINARY), File.readlink("/proc/#{server.pid}/exe")
    assert_equal 0, server.stop.exitstatus
  end

  # The command is still the image's, as there is no other in what is printed.
  def test_with_the_options_that_are_printed_for_kubernetes
    blog = image
    printed = highball("config", "kubernetes", "-w", "2", "-t", "4", blog)
    variables = printed.scan(/- \{ name: ([A-Z_]+), value: "?([^" ]+)"? \}/).to_h
    assert_equal %w[0.0.0.0:3000 4], variables.values_at("HIGHBALL_BIND", "RAILS_MAX_THREADS")
    server = run_image(blog, variables.merge("HIGHBALL_BIND" => "127.0.0.1:0", "HIGHBALL_ADMIN" => "127.0.0.1:0",
                                             "HIGHBALL_DRAIN_GRACE" => "0s"))
    assert_path_exists File.join(blog, "db/production.sqlite3")
    assert_equal 200, server.get("/").status
    assert_equal 2, server.status["workers_wanted"]
  end

  private

  def image
    bundled_blog.tap do |blog|
      File.write(File.join(blog, "bin/docker-entrypoint"), ENTRYPOINT, perm: 0o755)
      File.chmod(0o755, File.join(blog, "bin/rails"))
    end
  end

  # What a container of the image runs with these variables.
  def run_image(blog, variables)
    command = JSON.parse(changed(DOCKERFILE)[/^CMD (.*)$/, 1])
    env = ENVIRONMENT.merge("RAILS_LOG_TO_STDOUT" => "1", "SECRET_KEY_BASE" => "secret" * 20, **variables)
    serve(blog, command: ["bin/docker-entrypoint", *command], env: env)
  end

  # A Dockerfile after the documented change.
  def changed(dockerfile)
    block = Document.new("docs/deploying/docker.md").blocks.find { |one| one.marks == ["Dockerfile"] }
    gone, come = %w[- +].map { |sign| block.lines.grep(/\A[#{sign}]/).map { |line| "#{line[1..]}\n" }.join }
    assert dockerfile.end_with?(gone), "these are not its last lines:\n#{gone}"
    dockerfile.delete_suffix(gone) + come
  end
end
