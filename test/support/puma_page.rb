# frozen_string_literal: true

require "highball/puma_statements"

# docs/migrating/puma-statements.md, made from the table that the statements themselves are made from.
module PumaPage
  INTRODUCTION = <<~MARKDOWN
    <!-- Made from lib/highball/puma_statements.rb by HIGHBALL_BLESS=1 ruby -Ilib -Itest test/highball/puma_file_test.rb -->

    # Statements of Puma's configuration

    Highball reads an existing `config/puma.rb` or `config/puma/ENVIRONMENT.rb`. To see what it makes of yours, type
    `highball doctor` in the application's folder. The tables below list every statement.

    `highball -C FILE.rb` reads another file. Highball reads no `config/puma.rb` if `--config` names another file, or if
    `puma_config` is off.

    ## How Highball reads the file

    - **Ruby.** The application's own Ruby evaluates the file in the application's folder, with the gems of its Gemfile. If the
      file raises an exception, Highball doesn't start, and prints file and line.
    - **Statements without effect.** At the start, Highball reports each statement that it can't carry out or doesn't know, with
      its line and what to do instead. `highball doctor` lists the same.
    - **Restrictions.** If Highball can't keep a statement that restricts something, such as the only address,
      [it doesn't start](../security.md#when-a-restriction-cannot-be-enforced).
    - **Reloading.** HUP reads the file again. A rolling restart takes the hooks from the new release.

    ## What overrides the file

    - Options on the command line, variables that begin with `HIGHBALL_`, and settings in `config/highball.toml` override the file.
      If `config/highball.toml` names an address, a site (`domain`) or a number of workers, the file's addresses or workers don't
      count.
    - The file overrides the variables that platforms set (`PORT`, `WEB_CONCURRENCY`, `RAILS_MAX_THREADS`), as it does in Puma. Most
      files read these variables themselves.
    - `RAILS_ENV`, `RACK_ENV` and `APP_ENV` override `environment`.
    - With several applications, options of the server (`bind`, `port`, `pidfile` and the like) don't count. The log says so.

    ## Started by root

    Highball evaluates the file with the rights of the user who starts it. So root doesn't evaluate every file:

    - If the application runs as another user, Highball doesn't read the file's settings. The file's hooks run, in the
      application's processes.
    - If the application is root's and another user could have written the file, neither settings nor hooks count.

    The log says so. If the file names the only address, Highball doesn't start.
  MARKDOWN

  SECTIONS = {
    option: ["Settings", "These set options of Highball, which [Configuration](../configuration.md) describes."],
    hook: ["Hooks", "If a hook raises an exception, Highball logs it, and the process serves all the same."],
    file: ["Statements about the file itself", nil],
    built_in: ["Nothing to do",
               "Highball does these things anyway, or has nothing that they could set. It doesn't report them."],
    named: ["Reported", "These have no effect. The log and `highball doctor` report them with file and line."]
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
    | `WEB_CONCURRENCY` | `workers`. 0 means one worker; with `auto`, the number follows the load |
    | `RAILS_MAX_THREADS`, `PUMA_MAX_THREADS`, `MAX_THREADS` | `threads` |
    | `RAILS_MIN_THREADS`, `PUMA_MIN_THREADS`, `MIN_THREADS` | nothing: write a range, `threads = "3..5"` |
    | `PUMA_PERSISTENT_TIMEOUT` | `idle_timeout` |
    | `PORT`, `PIDFILE` | `port`, `pidfile` |
    | `RAILS_ENV`, `RACK_ENV`, `APP_ENV` | `environment` |

    ## Commands

    | Puma | Highball |
    | --- | --- |
    | `puma`, `pumactl start` | `highball` (`highball start` is the same) |
    | `puma -C config/puma.rb` | `highball -C config/puma.rb` |
    | `puma -t 1:5` | `highball -t 3..5` (`1:5` means the same: Puma's smaller number counts as 3 or more) |
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
