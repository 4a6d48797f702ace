# frozen_string_literal: true

require "json"
require "minitest/autorun"
require "open3"

# The workspaces of cargo: the server, and apart from it the benchmark.
class CratesTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)

  def test_the_workspace_of_the_server_has_nothing_of_the_benchmark
    assert_includes members("."), "highball-proc"
    assert_equal %w[highball-bench highball-floor], members("bench").sort
    assert_empty members(".") & members("bench")
  end

  # cargo lets no workspace inherit from another.
  def test_the_lints_of_both_workspaces_are_the_same
    refute_empty lints(".")
    assert_equal lints("."), lints("bench")
  end

  private

  # The names of the crates of the workspace in this folder.
  def members(workspace)
    command = %w[cargo metadata --locked --no-deps --format-version 1]
    output, errors, status = Open3.capture3(*command, chdir: File.join(ROOT, workspace))
    assert_predicate status, :success?, errors
    JSON.parse(output)["packages"].map { |package| package["name"] }
  end

  def lints(workspace)
    manifest = File.read(File.join(ROOT, workspace, "Cargo.toml"))
    manifest.scan(/^\[workspace\.lints\.\w+\]\n(?:[^\[#\n].*\n)+/)
  end
end
