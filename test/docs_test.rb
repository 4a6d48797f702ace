# frozen_string_literal: true

require "minitest/autorun"

# What the documents name has to be there: paths, commands, options, crates, recipes.
class DocsTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  DOCUMENTS = %w[README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md docs/behind-a-web-server.md docs/detection.md
                 docs/restarts.md docs/signals.md].freeze
  # A path of this tree begins with one of its folders, or is a file beside this document.
  FOLDERS = %w[.ci bench bin crates docs examples exe ext fuzz lib test].freeze
  PATH = %r{(?<![\w/.:-])(?:#{FOLDERS.map { |name| Regexp.escape(name) }.join('|')})/[\w./-]*\w}
  FILE = /\A[A-Z]\w+\.md\z|\A[\w.]+\.(?:toml|gemspec|yml)\z|\Ajustfile\z|\ALICENSE\z/
  # Made by building or running, so not there in a clean clone.
  MADE = %w[bench/RESULTS.md docs/images/origins-light.png docs/images/origins-dark.png].freeze

  def test_paths_exist
    each_piece_of_code do |document, code|
      code.scan(PATH) { |path| assert_path(document, path) }
      assert_path(document, code) if code.match?(FILE) || FOLDERS.include?(code)
    end
  end

  def test_links_lead_somewhere
    DOCUMENTS.each do |document|
      read(document).scan(/\]\(([^)]+)\)/) do |(target)|
        next if target.start_with?("http", "#")

        assert_path(document, File.join(File.dirname(document), target.sub(/#.*/, "")))
      end
    end
  end

  def test_recipes_exist
    recipes = read("justfile").scan(/^(\w+)[^:=\n]*:(?!=)/).flatten
    each_command("just") { |document, recipe| assert_includes recipes, recipe, document }
  end

  def test_crates_exist
    names = Dir[File.join(ROOT, "{crates,ext}/*/Cargo.toml")].map { |path| File.read(path)[/^name = "(.+)"/, 1] }
    each_piece_of_code do |document, code|
      code.scan(/cargo \w+ .*-p ([\w-]+)/) { |(name)| assert_includes names, name, document }
    end
  end

  def test_steps_of_bin_test_exist
    bin_test = File.join(ROOT, "bin/test")
    steps = `#{bin_test} --list`.split
    each_command("bin/test") do |document, step|
      assert_includes steps + ["--quick", "--full", "--list"], step, document
    end
  end

  def test_commands_and_options_of_highball_exist
    long = read("docs/configuration.md").scan(/`(--[\w-]+) /).flatten + %w[--host --json --gc --help --version]
    short = read("docs/configuration.md").scan(/`(-\w)`/).flatten
    each_piece_of_code do |document, code|
      next unless code.match?(%r{\A(?:bin/)?highball\b})

      code.sub(/#.*/, "").scan(/(?<=\s)--?[a-z][\w-]*/) { |option| assert_includes long + short, option, document }
    end
  end

  def test_versions_agree
    require_relative "../lib/highball/version"
    assert_equal Highball::VERSION, read("Cargo.toml")[/^version = "(.+)"/, 1]
  end

  private

  def read(name)
    File.read(File.join(ROOT, name), encoding: "UTF-8")
  end

  # Code as Markdown has it: between backticks, and in lines that are indented.
  def each_piece_of_code
    DOCUMENTS.each do |document|
      text = read(document)
      (text.scan(/`([^`\n]+)`/) + text.scan(/^ {4}(\S.*)/)).flatten.each { |code| yield document, code }
    end
  end

  # The first argument of each call of a command.
  def each_command(name)
    each_piece_of_code do |document, code|
      argument = code[/\A#{Regexp.escape(name)} ([\w-]+)/, 1]
      yield document, argument if argument
    end
  end

  def assert_path(document, path)
    return if MADE.include?(path)

    assert File.exist?(File.join(ROOT, path)), "#{document} names #{path}, which is not there"
  end
end
