# frozen_string_literal: true

require "json"
require_relative "../../support/admin"
require_relative "../../support/e2e_test"

# The names of all fields in what programs read of Highball: a field that is renamed or lost breaks them. The files in
# test/golden have them; HIGHBALL_BLESS=1 writes these.
class ReportFieldsTest < E2ETest
  include Admin

  GOLDEN = File.expand_path("../../golden", __dir__)
  # What is there only if the kernel enforces hard limits of the application.
  OF_SOME_MACHINES = /kernel_limits\./
  # Root's server does not look into the processes of other users.
  NOT_OF_ROOTS = ["highball_proportional_memory_bytes{app,kind}"].freeze

  def test_the_names_of_fields
    serve_all
    { "status" => command_output(@server, "status", "--json"), "top" => command_output(@server, "top", "--json"),
      "overview" => ask_admin("/overview").body }.each do |name, json|
      assert_fields("#{name}.txt", fields(JSON.parse(json)))
    end
    lines = ask_admin("/metrics").body.lines.grep_v(/\A#/)
    assert_fields("metrics.txt", lines.map { |line| line[/\A\S+/].gsub(/="[^"]*"/, "") }.uniq.sort)
  end

  private

  # With as much to report as one server has at a time.
  def serve_all
    folder = folder_with("config.ru" => 'run ->(env) { [200, { "cache-control" => "public, max-age=60" }, ["hello"]] }')
    @server = serve(folder, "--cache", "8m", "--memory-limit", "400m", "--with", "jobs=sleep 600", *admin, workers: 2)
    wait_for("its process") { @server.status["processes"].first["memory_bytes"] }
    3.times { @server.get("/") }
    [%w[restart], %w[refork], %w[rollout 50%]].each { |command| command_output(@server, *command) }
  end

  # The path of each field, once: "apps[].workers[].pid".
  def fields(value, path = "")
    inner = case value
            when Hash then value.flat_map { |name, field| fields(field, path.empty? ? name : "#{path}.#{name}") }
            when Array then value.flat_map { |element| fields(element, "#{path}[]") }
            else []
            end
    ([path] + inner).reject { |field| field.empty? || field.match?(OF_SOME_MACHINES) }.uniq.sort
  end

  def assert_fields(file, found)
    path = File.join(GOLDEN, file)
    if ENV["HIGHBALL_BLESS"]
      FileUtils.mkdir_p(GOLDEN)
      File.write(path, "#{found.join("\n")}\n")
    end
    known = File.readlines(path, chomp: true)
    known -= NOT_OF_ROOTS if OwnProcesses.spawner?
    assert_empty known - found, "fields that are gone"
    assert_empty found - known, "fields that are new: HIGHBALL_BLESS=1 writes them to test/golden/#{file}"
  end
end
