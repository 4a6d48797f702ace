# frozen_string_literal: true

require "highball/puma_statements"

# docs/migrating/puma-statements.md, made from the table that the statements themselves are made from.
module PumaPage
  INTRODUCTION = <<~MARKDOWN
    <!-- Made from lib/highball/puma_statements.rb by HIGHBALL_BLESS=1 ruby -Ilib -Itest test/highball/puma_file_test.rb -->

    # Statements of Puma's configuration

    Highball reads an existing `config/puma.rb` (or `config/puma/ENVIRONMENT.rb`), unless `--config` names another file or
    `puma_config` is off. `highball -C FILE.rb` names another one.

    The application's own Ruby evaluates the file in the application's folder, with the gems of its Gemfile. An exception in
    it ends the start with file and line. A statement that Highball cannot carry out is reported once, at the start, with its
    line and what to do instead; `highball doctor` lists the same. A statement that is not known is reported, too. Where a
    statement that narrows something is lost (the only address, for example), [there is no
    start](../security.md#when-a-restriction-cannot-be-kept).

    Options on the command line, variables that begin with `HIGHBALL_`, and what `config/highball.toml` sets outweigh the
    file. Where `config/highball.toml` names an address, a site (`domain`) or numbers of workers, the file's addresses or
    workers do not count. The file outweighs variables that platforms set (`PORT`, `WEB_CONCURRENCY`, `RAILS_MAX_THREADS`), as
    it does with Puma: most files read them themselves. `RAILS_ENV`, `RACK_ENV` and `APP_ENV` outweigh `environment`. HUP reads the file again; a rolling restart
    takes its hooks from the new release.

    Highball evaluates the file with the rights of the user who starts it. So if root starts it, it evaluates no file that another
    user could have written, and none of an application that runs as another user: there only the hooks count, which run in
    the application's processes. With several applications, options of the server (`bind`, `port`, `pidfile` and the like)
    do not count. The log says so.
  MARKDOWN

  SECTIONS = {
    option: ["Settings", "These set options of Highball, which [configuration.md](../configuration.md) describes."],
    hook: ["Hooks", "An exception in a hook is logged, and does not keep the process from serving."],
    file: ["Statements about the file itself", nil],
    built_in: ["Nothing to do",
               "Highball does so anyway, or has nothing that they could concern. They are not reported."],
    named: ["Reported", "These are not carried out. The log and `highball doctor` name file and line."]
  }.freeze

  COMMANDS = <<~MARKDOWN

    ## Plugins

    | plugin | what to do |
    | --- | --- |
    PLUGINS
    | any other | OTHER |

    ## Variables

    | variable | becomes |
    | --- | --- |
    | `WEB_CONCURRENCY` | `workers`; 0 is one worker, with `auto` their number follows the load |
    | `RAILS_MAX_THREADS`, `PUMA_MAX_THREADS`, `MAX_THREADS` | `threads` |
    | `RAILS_MIN_THREADS`, `PUMA_MIN_THREADS`, `MIN_THREADS` | nothing: all threads are started at once |
    | `PUMA_PERSISTENT_TIMEOUT` | `idle_timeout` |
    | `PORT`, `PIDFILE` | `port`, `pidfile` |
    | `RAILS_ENV`, `RACK_ENV`, `APP_ENV` | `environment` |

    ## Commands

    | Puma | Highball |
    | --- | --- |
    | `puma`, `pumactl start` | `highball` (`highball start` is the same) |
    | `puma -C config/puma.rb` | `highball -C config/puma.rb` |
    | `puma -t 1:5` | `highball -t 5` (of `1:5` the larger number counts) |
    | `puma -w 4 -p 3000 -e production` | `highball -w 4 -p 3000 -e production` |
    | `puma -V` | `highball -V` |
    | `puma -v` | `highball --access-log -` |
    | `pumactl stop` | `highball stop`, or TERM |
    | `pumactl halt` | TERM twice |
    | `pumactl restart` | `highball upgrade`, or USR2 |
    | `pumactl phased-restart` | `highball restart`, or USR1; it works with preloading |
    | `pumactl refork` | `highball refork`, or URG |
    | `pumactl status` | `highball status` |
    | `pumactl stats` | `highball status --json` |
    | `pumactl thread-backtraces` | `highball top --backtraces`, or PWR |
    | `pumactl gc`, `pumactl gc-stats` | `highball memory --gc`, `highball memory` |
    | `pumactl reopen-log` | HUP |
    | `pumactl worker-count-up`, `pumactl worker-count-down` | TTIN, TTOU |
  MARKDOWN

  module_function

  def text = INTRODUCTION + SECTIONS.map { |fate, (title, words)| section(fate, title, words) }.join + commands

  def section(fate, title, words)
    rows = Highball::PumaStatements::TABLE.select { |statement| statement.fate == fate }
    head, cells = columns(fate)
    "\n## #{title}\n\n#{if words
                          "#{words}\n\n"
                        end}| statement | #{head.join(' | ')} |\n| --- |#{' --- |' * head.length}\n" +
      rows.map { |row| "| #{names(row)} | #{cells.call(row).join(' | ')} |\n" }.join
  end

  def columns(fate)
    case fate
    when :option then [%w[option notes], ->(row) { [row.target.map { |name| "`#{name}`" }.join(", "), row.here] }]
    when :hook then [["when it runs"], ->(row) { [row.here] }]
    when :named then [["what Highball does", "what to do instead"], ->(row) { [row.here, row.remedy] }]
    else [["what Highball does"], ->(row) { [row.here] }]
    end
  end

  def names(row) = row.names.map { |name| "`#{name}`" }.join(", ")

  def commands
    plugins = Highball::PumaStatements::PLUGINS.map do |name, remedy|
      "| `:#{name}` | #{remedy || 'Nothing: it is built in.'} |"
    end
    COMMANDS.sub("PLUGINS", plugins.join("\n")).sub("OTHER", Highball::PumaStatements::OTHER_PLUGIN)
  end
end
