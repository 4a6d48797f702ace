# frozen_string_literal: true

# A Markdown document of this tree: its text, its blocks of code, its headings and its links.
class Document
  ROOT = File.expand_path("../..", __dir__)
  def self.paths(pattern) = Dir[File.join(ROOT, pattern)].map { |path| path.delete_prefix("#{ROOT}/") }

  # The documents for users. The others are for contributors.
  FOR_USERS = (["README.md"] + paths("docs/{,deploying/,migrating/}*.md") - ["docs/gems.md"]).freeze
  FOR_CONTRIBUTORS = (%w[ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md] + paths("docs/gems.md") +
                      paths("{docs/decisions,crates/*,bench/*}/*.md")).freeze

  # A fenced block, its language, and the marks after the language, which select its test.
  Block = Struct.new(:document, :line, :language, :marks, :text) do
    def to_s = "#{document}:#{line} (#{[language, *marks].join(' ')})"
    def mark = marks.first
    def lines = text.lines(chomp: true)
    # The text with its example folders moved into `stage`.
    def in_folder(stage) = text.gsub(%r{(?<=[\s"'=]|\A)/(srv|etc/highball)(?=/)}, "#{stage}/\\1")
  end

  # The only reasons not to run a block of commands.
  NOT_RUN = {
    "installs" => "fetches packages",
    "root" => "changes the system as root",
    "remote" => "talks to another machine",
    "container" => "needs a container engine",
    "rails" => "needs an application of Rails with a Gemfile: test/e2e has one",
    "benchmark" => "takes minutes: test/e2e/operations/bench_test.rb runs short ones",
    "completions" => "writes to the home folder",
    "tests" => "runs this test"
  }.freeze

  # The languages, each with the marks that its blocks may have; `nil`: none.
  LANGUAGES = {
    "sh" => ["run", "serve", "live", "check", *NOT_RUN.keys.map { |reason| "not=#{reason}" }],
    "toml" => [nil, "fly"],
    "ruby" => %w[gemfile hooks capistrano capybara rails rack alone],
    "yaml" => %w[kamal render cable kubernetes compose],
    "json" => %w[devcontainer],
    "ini" => %w[env drop-in],
    "dockerfile" => %w[container fragment],
    "diff" => %w[Gemfile Dockerfile],
    "nginx" => [nil], "procfile" => [nil], "logrotate" => [nil], "sudoers" => [nil],
    "text" => [nil]
  }.freeze

  def self.for_users = FOR_USERS.map { |path| new(path) }
  def self.all = (FOR_USERS + FOR_CONTRIBUTORS).map { |path| new(path) }

  # Each option, and the text of its default, by the manual.
  def self.defaults
    @defaults ||= new("docs/configuration.md").text.split(/^### /).drop(1).to_h do |part|
      [part[/\A\w+/], part[/^- default: (.*)$/, 1].to_s]
    end
  end

  attr_reader :path, :text

  def initialize(path)
    @path = path
    @text = File.read(File.join(ROOT, path), encoding: "UTF-8")
  end

  def blocks
    @blocks ||= [].tap do |found|
      open = nil
      @text.each_line.with_index(1) do |line, number|
        if open.nil? && line.start_with?("```")
          language, *marks = line.chomp.delete_prefix("```").split
          open = Block.new(path, number, language, marks, +"")
        elsif line.start_with?("```")
          found << open.freeze
          open = nil
        elsif open
          open.text << line
        end
      end
    end
  end

  # The words of its text, without blocks and tables.
  def words = text_lines.join(" ").split

  # Its sentences: code between backticks counts as a word, and a link as its text.
  def sentences
    text = text_lines.grep_v(/\A#/).join("\n")
    text.split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )/).flat_map do |paragraph|
      plain = paragraph.gsub(/`[^`]*`/, "X").gsub(/!?\[([^\]]*)\]\([^)]*\)/, '\1')
      plain.gsub(/\s+/, " ").split(/(?<=[.!?:;]) /)
    end
  end

  # The lines outside of blocks, with their numbers.
  def prose
    @prose ||= begin
      inside = false
      @text.each_line(chomp: true).with_index(1).reject do |line, _number|
        fence = line.start_with?("```")
        inside ^= fence
        fence || inside
      end
    end
  end

  # Pieces between backticks.
  def inline_code = prose.map(&:first).join("\n").scan(/`([^`]+)`/).flatten.map { |code| code.tr("\n", " ") }

  # Targets of links and pictures.
  def links
    text = prose.map(&:first).join("\n").gsub(/`[^`]*`/, "")
    text.scan(/\]\(([^)\s]+)\)/).flatten + text.scan(/(?:src|srcset|href)="([^"]+)"/).flatten
  end

  # The anchors of the headings, as GitHub generates them.
  def anchors
    prose.map(&:first).grep(/\A#+ /).map { |line| self.class.anchor(line.sub(/\A#+ /, "")) }
  end

  def self.anchor(heading)
    heading.gsub(/\[([^\]]*)\]\([^)]*\)/, '\1').downcase.gsub(/[^\p{Word}\- ]/, "").tr(" ", "-")
  end

  # The commands of Highball in a piece of code, as lists of arguments, without variables and `sudo` before them.
  def self.commands_in(code)
    code.lines.flat_map { |line| line.sub(/(\A|\s)#.*/, "").split(/\||&&|;|>/) }.filter_map do |command|
      words = Shellwords.split(command)
      words.shift while words.first&.match?(/\A(?:[A-Z_]+=.*|sudo|bundle|exec)\z/)
      words.drop(1) if words.first&.match?(%r{\A(?:bin/)?highball\z})
    rescue ArgumentError # half of a quoted text
      nil
    end
  end

  private

  # Lines of text: no blocks, tables, HTML or comments.
  def text_lines = prose.map(&:first).grep_v(/\A\s*[|<]/)
end
