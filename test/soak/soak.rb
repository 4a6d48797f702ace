# frozen_string_literal: true

# Checks that clients do not notice operations on a running server: 50 clients send requests all the time, while the
# server is restarted, reforked, upgraded and so on, again and again.
#
#     ruby test/soak/soak.rb [--app small|redmine] [--times N] [--kinds restart,workers] [--workers N]
#
# Without options everything is done a hundred times to a small application, and five times to Redmine. Exits 1 if a
# single request failed, was refused, was cut off or was answered wrongly, or if anything is left behind.

require "optparse"
require "tmpdir"
require_relative "../support/redmine_app"
require_relative "../support/soak_run"

# The program.
class Soak
  APPS = { "small" => VersionedApp, "redmine" => RedmineApp }.freeze
  TIMES = { "small" => 100, "redmine" => 5 }.freeze
  PROGRESS_EVERY = 10 # operations
  FAILURES = 20 # that are shown in full
  LOG_LINES = 80

  HEADINGS = ["app", "operation", "times", "median s", "longest s", "requests", "by status", "failed", "refused",
              "reset", "wrong", "went back", "closed", "longest answer s", "open files", "MiB"].freeze

  def initialize(arguments)
    @apps = APPS.keys
    @kinds = Operations::KINDS.keys
    @workers = 2
    options.parse!(arguments)
    raise OptionParser::NeedlessArgument, arguments.first unless arguments.empty?
  end

  # Whether all runs succeeded.
  def perform
    rows = @apps.product(@kinds).filter_map { |app, kind| soak(app, kind) }
    puts "", table(rows.map(&:first))
    rows.all?(&:last)
  end

  private

  def options
    OptionParser.new do |on|
      on.on("--app NAME", APPS.keys, "small or redmine; default: both") { |name| @apps = [name] }
      on.on("--times N", Integer, "how often each is done; default: 100, and 5 with redmine") { |n| @times = n }
      on.on("--kinds LIST", Array, "of #{@kinds.join(', ')}; default: all") { |names| @kinds = known(names) }
      on.on("--workers N", Integer, "default: 2") { |n| @workers = n }
    end
  end

  def known(names)
    unknown = names - Operations::KINDS.keys
    raise OptionParser::InvalidArgument, unknown.join(",") unless unknown.empty?

    names
  end

  # One kind on a new server: its row of the table, and whether it succeeded.
  def soak(name, kind)
    return puts("redmine: needs the packages redmine and redmine-sqlite") if name == "redmine" && !RedmineApp.installed?

    times = @times || TIMES.fetch(name)
    puts "#{name}, #{kind}, #{times} times"
    Dir.mktmpdir("highball-soak") do |folder|
      app = APPS.fetch(name).new(Dir.mkdir(File.join(folder, "app")).then { File.join(folder, "app") })
      with_server(app, folder) do |server|
        run = SoakRun.new(server, app, Operations::KINDS.fetch(kind))
        run.perform(times) { |number| progress(run, number, times) }
        failures = run.failures + end_of(server)
        show(failures, server) unless failures.empty?
        [row(name, kind, run), failures.empty?]
      end
    end
  end

  def with_server(app, folder)
    server = HighballServer.start(app.folder, workers: @workers, env: app.env, ready: app.ready,
                                              second_socket: File.join(folder, "highball.sock"))
    yield server
  ensure
    server&.finish
  end

  def end_of(server)
    server.stop
    orphans = server.orphans
    problems = []
    problems << "highball did not end in good order" unless server.log.include?("stopped; every request was answered")
    problems << "processes #{orphans.join(', ')} outlived their server" unless orphans.empty?
    problems
  rescue Deadline::Missed => e
    [e.message]
  end

  def progress(run, number, times)
    return unless (number % PROGRESS_EVERY).zero? || number == times

    puts format("  %<number>4d  %<seconds>6.2f s each  %<answers>8d requests  %<failed>d failed",
                number: number, seconds: run.seconds.last(PROGRESS_EVERY).sum / [number, PROGRESS_EVERY].min,
                answers: run.load.answers, failed: run.load.failed.values.sum)
    $stdout.flush
  end

  def show(failures, server)
    puts "", "the first of #{failures.length} failures:", failures.first(FAILURES)
    puts "", "the end of the log of highball:", server.log.lines.last(LOG_LINES), ""
  end

  def row(name, kind, run)
    load = run.load
    statuses = load.by_status.sort.map { |status, count| "#{status}: #{count}" }.join(", ")
    sizes = [run.before, run.after]
    [name, kind, run.seconds.length, *[middle(run.seconds), run.seconds.max].map { |seconds| seconds&.round(2) },
     load.by_status.values.sum, statuses, *load.failed.values_at(:failed, :refused, :reset, :wrong, :went_back),
     load.closes, load.longest.round(2), sizes.map { |size| size&.files }.join(" → "),
     sizes.map { |size| size&.mib&.round(1) }.join(" → ")]
  end

  def middle(seconds) = seconds.sort[seconds.length / 2]

  # One column a run: there are more facts than runs.
  def table(rows)
    HEADINGS.each_with_index.map do |heading, index|
      [heading.ljust(18), *rows.map { |row| row[index].to_s.ljust(20) }].join.rstrip
    end
  end
end

if $PROGRAM_NAME == __FILE__
  begin
    exit Soak.new(ARGV).perform
  rescue OptionParser::ParseError => e
    abort "#{$PROGRAM_NAME}: #{e.message}; see the head of this file"
  rescue Interrupt
    abort "stopped"
  end
end
