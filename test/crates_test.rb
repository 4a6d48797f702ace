# frozen_string_literal: true

require "json"
require "minitest/autorun"
require "open3"

# The workspaces of cargo: the server, and apart from it the benchmark; and what ARCHITECTURE.md says of their crates.
class CratesTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)

  def test_the_workspace_of_the_server_has_nothing_of_the_benchmark
    assert_includes members("."), "highball-proc"
    assert_equal %w[highball-bench highball-floor], members("bench").sort
    assert_empty members(".") & members("bench")
  end

  # Otherwise a build changes the file, and with it the versions that were tested.
  def test_the_lock_files_have_what_the_manifests_ask_for
    %w[. bench fuzz].each { |workspace| cargo(workspace, "update", "--workspace", "--locked") }
  end

  # cargo lets no workspace inherit from another.
  def test_the_lints_of_both_workspaces_are_the_same
    refute_empty lints(".")
    assert_equal lints("."), lints("bench")
  end

  def test_the_code_map_says_what_each_crate_imports
    rows = architecture.scan(%r{^\| `((?:crates|ext)/\w+)` \| .* \| (.*?) ?\|$}).to_h
    assert_equal Dir.glob("{crates,ext}/*", base: ROOT).sort, rows.keys.sort
    rows.each { |crate, named| assert_equal imports(crate).join(", "), named, crate }
  end

  # Crates that are `unsafe` throughout are named as folders.
  def test_unsafe_code_is_where_the_invariants_say
    allowed = architecture[/^\| \*\*`unsafe` is in .*$/].scan(%r{`((?:crates|ext)/?[\w/]*(?:\.rs)?)`}).flatten
    found = with("allow(unsafe_code)", "{crates,ext}/*/src/**/*.rs")
    assert_empty(found.reject { |path| path.start_with?(*allowed) })
    assert_empty(allowed.reject { |path| found.any? { |file| file.start_with?(path) } })
  end

  def test_ruby_is_linked_and_its_lock_released_in_one_place
    assert_equal %w[ext/highball/Cargo.toml], with("rb-sys", "{crates,ext}/*/Cargo.toml")
    assert_equal %w[ext/highball/src/nogvl.rs], with("rb_sys::rb_thread_call_without_gvl", "ext/*/src/**/*.rs")
  end

  private

  # The files that contain this text.
  def with(text, pattern)
    Dir.glob(pattern, base: ROOT).select { |path| File.read(File.join(ROOT, path)).include?(text) }
  end

  def architecture = File.read(File.join(ROOT, "ARCHITECTURE.md"), encoding: "UTF-8")

  # The crates of the server that a crate is built with.
  def imports(crate)
    dependencies = File.read(File.join(ROOT, crate, "Cargo.toml"))[/^\[dependencies\]\n(?:[^\[].*\n|\n)*/].to_s
    dependencies.scan(/^highball-(\w+)/).flatten.sort
  end

  # The names of the crates of the workspace in this folder.
  def members(workspace)
    output = cargo(workspace, "metadata", "--locked", "--no-deps", "--format-version", "1")
    JSON.parse(output)["packages"].map { |package| package["name"] }
  end

  def cargo(workspace, *command)
    output, errors, status = Open3.capture3("cargo", *command, chdir: File.join(ROOT, workspace))
    assert_predicate status, :success?, "#{workspace}: #{errors}"
    output
  end

  def lints(workspace)
    manifest = File.read(File.join(ROOT, workspace, "Cargo.toml"))
    manifest.scan(/^\[workspace\.lints\.\w+\]\n(?:[^\[#\n].*\n)+/)
  end
end
