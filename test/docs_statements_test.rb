# frozen_string_literal: true

require "minitest/autorun"
require_relative "support/documents"

# Kinds of statements that were false once, each compared with its subject. docs_test.rb has names of options, files and
# commands, docs_quotes_test.rb quotations, and e2e/adoption/documented_commands_test.rb what commands print.
class DocsStatementsTest < Minitest::Test
  ROOT = Document::ROOT
  PROGRAMS = "crates/highball/src/deploy"

  # What people had another program for, and the option that does it.
  BUILT_IN = {
    /certificate/i => "domain", /\bHTTPS\b/ => "tls_certificate", /redirect/i => "redirects", /compress/i => "compress",
    /static files/i => "static_files", /slow clients/i => "spool_dir", /rate limit/i => "rate_limit",
    /maintenance/i => "maintenance_file", /password/i => "basic_auth", /\bcach/i => "cache",
    %r{HTTP/2} => "http2_cleartext", /sticky/i => "affinity"
  }.freeze
  PROXY = /\b(?:nginx|Caddy|Thruster|(?:another )?proxy)\b/
  NEEDED = /\b(?:[Nn]eeds?|[Kk]eep|yes|[Ii]nstall)\b/
  NOT = /\b(?:not?|No|don't|doesn't|isn't|without|instead)\b/

  # "For certificates, you need nginx."
  def test_no_page_asks_for_a_proxy_for_what_is_built_in
    BUILT_IN.each_value { |option| assert Document.defaults.key?(option), option }
    Document.for_users.each do |document|
      heading = nil
      document.text.split(/\n\s*\n/).each do |paragraph|
        heading = paragraph if paragraph.start_with?("#")
        next if paragraph.start_with?("|")

        sentences(paragraph).each do |sentence|
          next unless "#{heading} #{sentence}".match?(PROXY) && sentence.match?(NEEDED) && !sentence.match?(NOT)

          BUILT_IN.each { |feature, option| refute_match(feature, sentence, "#{document.path}: `#{option}` does it") }
        end
      end
    end
  end

  # "| `passenger_sticky_sessions` | none |"
  def test_no_table_says_none_for_what_is_built_in
    pages = Document.for_users.select { |document| document.path.start_with?("docs/migrating/") }
    rows = pages.flat_map { |page| page.text.scan(/^(\|.*)\| none\b[^|]*\|$/).map { |(theirs)| [page.path, theirs] } }
    assert_operator rows.size, :>, 3
    rows.each do |path, theirs|
      BUILT_IN.each { |feature, option| refute_match(feature, theirs, "#{path}: `#{option}` does it") }
    end
  end

  # Rows of several pages about one command of Puma's.
  def test_pages_agree_about_the_commands_of_others
    rows = Document.for_users.flat_map do |document|
      document.text.scan(/^\| (`pumactl [a-z-]+`[^|]*) \| ([^|]*) \|$/).flat_map do |commands, here|
        commands.scan(/pumactl [a-z-]+/).map { |command| [command, [document.path, here]] }
      end
    end
    rows = rows.group_by(&:first).transform_values { |found| found.map(&:last) }
    assert(rows.values.any? { |found| found.size > 1 })
    rows.each do |command, found|
      answers = found.map { |path, here| [path, here[/`[^`]+`|\b[A-Z]{3,}\d?\b|\bnone\b/]] }
      assert_equal 1, answers.map(&:last).uniq.size, "#{command}: #{answers}"
    end
  end

  # The number of workers follows the load: it only begins with the number of CPUs.
  def test_auto_is_no_fixed_number_of_workers
    texts = Document.for_users.to_h { |document| [document.path, document.text] }
    texts.merge(printed).each do |path, text|
      sentences(text.gsub(/^#\s?/, "")).each do |sentence|
        next unless sentence.match?(/\bauto\b/) && sentence.match?(/(?:each|per|every|one a) CPU/)

        assert_match(/follows|begins|starting|start with|at most|up to|max_workers|`max|two per/, sentence, path)
      end
    end
  end

  # In a configuration of `highball init`, a value is the default or an example, or the comment tells the default.
  def test_values_of_comments_are_defaults
    text = read("#{PROGRAMS}/init/highball.toml")
    paragraphs = text.split(/\n\n/).flat_map do |paragraph|
      comment = paragraph[/(?:^# .*\n)+/].to_s
      paragraph.scan(/^#(\w+) = "?([^"\n]+)"?/).map { |name, value| [name, value, comment] }
    end
    assert_operator paragraphs.size, :>, 5
    paragraphs.each do |name, value, comment|
      default = Document.defaults.fetch(name)
      next if default.match?(/(?<![\w.])#{Regexp.escape(value)}(?!\w)/) || default.match?(/\Anone|\A-|\Aoff/)

      assert_match(/[Tt]he default|such as/, comment, "#{name} = #{value}: the default is #{default}")
    end
  end

  # "The first lines of the printed unit have these commands."
  def test_the_printed_unit_has_the_documented_commands
    page = Document.new("docs/deploying/systemd.md").text
    rows = page[/^\| you want \| type \|\n(?:\|.*\n)+(?=\n(?!#).*first lines)/m].lines.drop(2)
    header = read("#{PROGRAMS}/programs/systemd.conf")[/\A(?:#.*\n)+/].gsub("{highball}", "highball")
    commands = rows.flat_map { |row| row.split("|").last(2).first.scan(/`([^`]+)`/).flatten }
    assert_operator commands.size, :>, 4
    commands.each do |command|
      assert_includes header, command.gsub("blog", "{name}").sub("-u {name} XDG", "-u {user} XDG")
    end
  end

  # A command in a paragraph about other systems is for a machine that has one of Linux.
  def test_no_command_is_for_a_system_on_which_it_cannot_run
    Document.for_users.each do |document|
      document.text.split(/\n\s*\n/).each do |paragraph|
        next unless paragraph.match?(/\bmacOS\b|on a Mac\b/) && paragraph.match?(/`highball [a-z]/)

        assert_match(/Linux machine|container|WSL/, paragraph, document.path)
      end
    end
  end

  # `systemctl reload` runs what the pages say, for both units.
  def test_what_reload_does_is_said_on_both_pages
    runs = { "printed" => "#{PROGRAMS}/programs/systemd.conf", "package" => "packaging/debian/highball.service" }
    runs.each do |unit, file|
      command = read(file)[/^ExecReload="?\S*?(?:highball|\{highball\})"? (\w+)/, 1]
      assert command, file
      %w[docs/deploying/systemd.md docs/deploying/debian.md].each do |page|
        rows = Document.new(page).text.lines.grep(/^\| [^|]*#{unit}[^|]* \| `highball /i)
        assert_equal ["highball #{command}"], rows.map { |row| row.split("|")[2][/`([^`]+)`/, 1] }, "#{page}: #{unit}"
      end
    end
  end

  # The pages keep the image's command, so printed configurations replace it neither.
  def test_printed_configurations_keep_the_command_of_the_image
    assert_match(/Keep (?:this|it as the) command/, Document.new("docs/deploying/docker.md").text)
    %w[kamal.yaml kubernetes.yaml nomad.hcl].each do |name|
      refute_match(/^\s*(?:cmd|command|args)\s*[:=]/, read("#{PROGRAMS}/programs/#{name}"), name)
    end
  end

  # Promises of the changelog: commands that there are.
  def test_commands_of_the_changelog_exist
    names = read("crates/config/src/counterparts.rs")[/COMMANDS: .*?\];/m].scan(/"([a-z]+)"/).flatten
    found = read("CHANGELOG.md").scan(/`highball ([a-z]+)/).flatten
    refute_empty found
    assert_empty found - names
  end

  private

  def read(name) = File.read(File.join(ROOT, name), encoding: "UTF-8")
  def sentences(text) = text.gsub(/\s+/, " ").split(/(?<=[.!?:;]) /)

  def printed
    Dir.glob("#{PROGRAMS}/{init,programs}/*", base: ROOT).to_h { |path| [path, read(path)] }
  end
end
