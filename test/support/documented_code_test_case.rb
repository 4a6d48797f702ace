# frozen_string_literal: true

require "shellwords"
require "socket"
require_relative "documents"
require_relative "e2e_test"

# A test of the blocks of code in the README and the documents for users: it runs or validates them as their marks say.
# (test/docs_test.rb checks that each has a mark.)
class DocumentedCodeTestCase < E2ETest
  # The application in each folder that a document calls /srv/…
  APP = {
    "config.ru" => "run ->(_env) { [200, { 'content-type' => 'text/plain' }, ['hello']] }\n",
    "Gemfile" => "gem 'rack'\n",
    "public/application.css" => "body {}\n"
  }.freeze
  APPS = %w[blog shop wiki redmine maintenance].freeze

  def self.blocks(language) = Document.for_users.flat_map(&:blocks).select { |block| block.language == language }

  private

  def each_block(language, mark = :any, &check)
    blocks = self.class.blocks(language).select { |block| mark == :any || block.mark == mark }
    refute_empty blocks, "there is no block of #{language} any more: take its test away, too"
    blocks.each(&check)
  end

  # A folder with applications in srv, and `highball` in bin.
  def stage
    files = APPS.flat_map { |app| APP.map { |name, text| ["srv/#{app}/#{name}", text] } }.to_h
    folder_with(files).tap do |folder|
      FileUtils.mkdir_p(["bin", *APPS.flat_map { |app| ["srv/#{app}/tmp/pids", "srv/#{app}/log"] }]
                          .map { |name| File.join(folder, name) })
      APPS.each { |app| File.symlink(".", File.join(folder, "srv", app, "current")) }
      File.symlink(HighballServer::BINARY, File.join(folder, "bin/highball"))
    end
  end

  # Highball prints its help only if it has understood the words before `--help`.
  def assert_command(document, words)
    name = words.first.to_s
    assert_includes subcommands, name, "#{document}: highball #{words.join(' ')}" if name.match?(/\A[a-z]+\z/)
    return if name == "bench" # its options are its own

    words = words.grep_v(/\A[…\[]/)
    output, ended = HighballServer.run(*words, "--help")
    assert_predicate ended, :success?, "#{document}: highball #{words.join(' ')}: #{output}"
  end

  # The subcommands of the help, and `start`, which the help does not list.
  def subcommands
    @subcommands ||= begin
      commands = HighballServer.run("--help").first[/^Commands:\n(.*?)\n\n/m, 1]
      ["start", *commands.scan(/^  ([a-z]+)/).flatten]
    end
  end
end
