# frozen_string_literal: true

require "minitest/autorun"
require_relative "support/documents"

# What documents for users quote is what the program writes: people search for what they find in the log.
class DocsQuotesTest < Minitest::Test
  ROOT = Document::ROOT

  LOG_LINE = /^(?:\d{4}-\S+Z )?(?:ERROR|WARN |INFO |DEBUG) (?:(?!crash loop)[\w-]+: )?(.*)/
  def test_quoted_log_lines_are_the_programs
    quoted = Document.for_users.flat_map do |document|
      messages = document.text.scan(/^\| message \| .*\n\|.*\n((?:\|.*\n)+)/).flatten
      messages = messages.flat_map { |table| table.scan(/^\| ((?:`[^`]+`(?:, )?)+)/).flatten }
      messages = messages.flat_map { |cell| cell.scan(/`([^`]+)`/).flatten }
      lines = document.blocks.select { |block| block.language == "text" }.flat_map { |block| block.text.scan(LOG_LINE) }
      (messages + lines.flatten).map { |line| [document.path, line] }
    end
    assert_operator quoted.size, :>, 10
    quoted.each do |path, line|
      line.split(/ \w+=/).first.split("…").map(&:strip).grep(/\w/).each do |part|
        assert sources.include?(part.sub(/\A\W+/, "")), "#{path}: nothing logs `#{line}`"
      end
    end
  end

  # Samples of `highball status` have names that it prints. Some need --details, which the page then says.
  def test_samples_of_status_are_true
    reports = Dir.glob("crates/link/src/**/*.rs", base: ROOT).map { |path| read(path) }.grep(/Fact\b/).join
    details = facts(reports[/^impl RubyRuntime \{.*?^\}/m])
    names = facts(reports) + read("crates/highball/src/status/table.rs").scan(/\(\s*"([a-zA-Z ]+)", /).flatten
    columns = reports[/^impl WorkerReport \{.*?^\}/m].scan(/Column::\w+\("(\w+)"/).flatten
    samples = status_samples(names)
    assert_operator samples.size, :>, 5
    samples.each do |block, before|
      lines = block.lines.grep_v(/\A {13}/)
      next assert_equal(columns, lines.first.split, block.to_s) if lines.first.start_with?("  worker")

      labels = lines.map { |line| line[/\A(.{12}) \S/, 1].to_s.rstrip }
      assert_empty labels - names, block.to_s
      assert_empty labels & details, "#{block}: needs --details" unless before.include?("--details")
    end
  end

  private

  # The names of the facts in this code.
  def facts(code)
    names = code.scan(/[\[( ]\("([a-zA-Z ]+)", (?!true|false)/).flatten
    names.tap { refute_empty names }
  end

  # Blocks that begin with a name that `highball status` prints or with its table of workers, each with the text before.
  def status_samples(names)
    Document.for_users.flat_map do |document|
      samples = document.blocks.select do |block|
        first = block.language == "text" && block.lines.first
        first && (first.start_with?("  worker") || names.include?(first[/\A(\S.*?) {2,}\S/, 1]))
      end
      samples.map { |block| [block, document.text.lines[0...(block.line - 1)].last(6).join] }
    end
  end

  # What the program is made from, as one line: long strings are in pieces there.
  def sources
    @sources ||= begin
      paths = Dir.glob("{crates,ext,lib}/**/*.{rs,rb}", base: ROOT).grep_v(%r{/tests?[/.]})
      paths.map { |path| read(path) }.join("\n").gsub(/\\\n\s*/, "").gsub(/\s+/, " ")
    end
  end

  def read(name)
    File.read(File.join(ROOT, name), encoding: "UTF-8")
  end
end
