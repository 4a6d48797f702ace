# frozen_string_literal: true

require "minitest/autorun"
require "shellwords"
require "yaml"
require_relative "support/documents"

# What the documents name has to be there: paths, links, headings, commands, options, crates, recipes. And each block of
# code in those for users has to say how it is tested; test/e2e/docs_test.rb does it.
class DocsTest < Minitest::Test
  ROOT = Document::ROOT
  DOCUMENTS = (Document::FOR_USERS + %w[ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md]).freeze
  # A path of this tree begins with one of its folders, or is a file beside this document.
  FOLDERS = %w[.ci bench bin crates docs examples exe ext fuzz lib site test].freeze
  PATH = %r{(?<![\w/.:-])(?:#{FOLDERS.map { |name| Regexp.escape(name) }.join('|')})/[\w./-]*\w}
  FILE = /\A[A-Z]\w+\.md\z|\A[\w.]+\.(?:toml|gemspec|yml)\z|\Ajustfile\z|\ALICENSE\z/
  # Made by building or running, so not there in a clean clone.
  MADE = %w[bench/RESULTS.md docs/images/origins-light.png docs/images/origins-dark.png].freeze
  # Files of applications, by names that this tree might have too.
  OF_APPS = %r{\Abin/(?:rails|dev|jobs|thrust)\z|\Atest/application_system_test_case\.rb\z|\A(?:highball|fly|package)\.(?:toml|json)\z|\A(?:render\.yaml|RESULTS\.md)\z}
  # Written on other branches.
  COMING = %w[docs/migrating/puma-statements.md].freeze

  def test_paths_exist
    each_piece_of_code do |document, code|
      code.scan(PATH) { |path| assert_path(document, path) }
      assert_path(document, code) if code.match?(FILE) || FOLDERS.include?(code)
    end
  end

  def test_links_lead_somewhere
    Document.all.each do |document|
      document.links.reject { |target| target.match?(/\A[a-z]+:/) }.each do |target|
        path, anchor = target.split("#", 2)
        path = path.empty? ? document.path : File.join(File.dirname(document.path), path).delete_prefix("./")
        assert_path(document.path, path)
        assert_anchor(document.path, path, anchor) if anchor
      end
    end
  end

  def test_every_block_says_how_it_is_tested
    Document.for_users.flat_map(&:blocks).each do |block|
      marks = Document::LANGUAGES[block.language]
      assert marks, "#{block}: a block needs a language, one of #{Document::LANGUAGES.keys.join(', ')}"
      assert_includes marks, block.mark, "#{block}: how is it tested?"
    end
  end

  # It would be neither run nor checked, and in lists the site shows something else.
  def test_no_code_is_indented
    Document.for_users.each do |document|
      document.prose.each_cons(2) do |(before, _), (line, number)|
        refute before.empty? && line.start_with?("    "), "#{document.path}:#{number}: use a fenced block"
      end
    end
  end

  # Commands must not hide among what is only shown.
  def test_text_is_no_command
    Document.for_users.flat_map(&:blocks).select { |block| block.language == "text" }.each do |block|
      refute_match(/^\$ |^(?:sudo |bin\/|highball )/, block.text, "#{block}: mark it `sh`")
    end
  end

  # GitHub shows a list, the site a paragraph.
  def test_lists_follow_an_empty_line
    item = /\A\s*(?:[-*]|\d+\.) /
    Document.for_users.each do |document|
      document.prose.each_cons(2) do |(before, _), (line, number)|
        next unless line.match?(/\A(?:[-*]|\d+\.) /)

        assert before.empty? || before.match?(item) || before.start_with?("  "),
               "#{document.path}:#{number}: leave a line empty before the list"
      end
    end
  end

  def test_every_page_is_in_the_index_and_on_the_site
    pages = Document::FOR_USERS.grep(%r{\Adocs/}).map { |path| path.delete_prefix("docs/") } - ["README.md"]
    index = Document.new("docs/README.md").links.map { |target| target.sub(/#.*/, "") }
    assert_empty pages - index, "docs/README.md does not name them"
    on_site = YAML.load_file(File.join(ROOT, "site/mkdocs.yml"))["nav"].to_s.scan(/[\w\/-]+\.md/)
    assert_empty pages - on_site, "site/mkdocs.yml does not name them"
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
    steps = `#{File.join(ROOT, "bin/test")} --list`.split
    each_command("bin/test") do |document, step|
      assert_includes steps + ["--quick", "--full", "--list"], step, document
    end
  end

  # Options by their names in the file, too: in tables they are all that there is to see.
  def test_options_exist
    names = read("docs/configuration.md").scan(/^### (\w+)$/).flatten
    each_piece_of_code do |document, code|
      option = code[/\A(\w+) = (?:"|\d|true|false|\[)/, 1] or next
      next if code.match?(/\A(?:LD_PRELOAD|config)\b/)

      assert_includes names + %w[path], option, "#{document}: `#{code}`"
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

  # Code as Markdown has it: between backticks, and in lines of blocks. (Those for contributors may be indented.)
  def each_piece_of_code
    DOCUMENTS.each do |path|
      document = Document.new(path)
      pieces = document.inline_code + document.blocks.select { |block| block.language == "sh" }.flat_map(&:lines)
      pieces += document.text.scan(/^ {4}(\S.*)/).flatten unless Document::FOR_USERS.include?(path)
      pieces.each { |code| yield path, code }
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
    return if MADE.include?(path) || COMING.include?(path) || path.match?(OF_APPS)

    assert File.exist?(File.join(ROOT, path)), "#{document} names #{path}, which is not there"
  end

  # Both GitHub and the site (Python-Markdown) have to find the heading.
  def assert_anchor(document, path, anchor)
    return if MADE.include?(path) || COMING.include?(path)

    assert_includes Document.new(path).anchors, anchor, "#{document} links to #{path}"
    refute_match(/--|[^\x21-\x7e]/, anchor, "#{document}: the site would call it something else")
  end
end
