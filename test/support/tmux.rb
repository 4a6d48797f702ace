# frozen_string_literal: true

require "fileutils"
require "open3"
require "tmpdir"
require_relative "highball_server"

# A command in a terminal of some size: tmux draws it, so that what is seen is the screen, and not how it was written.
class Tmux
  WITHIN = 30
  # Nothing of its user's configuration, and no bar below the screen.
  CONFIGURATION = "set -g status off\nset -g default-terminal screen-256color\nset -g remain-on-exit on\n"

  # `environment`: more variables for the command.
  def self.open(*command, columns: 80, rows: 24, environment: {})
    tmux = new(command, columns, rows, environment)
    yield tmux
  ensure
    tmux&.finish
  end

  def initialize(command, columns, rows, environment)
    @folder = Dir.mktmpdir("highball-tmux")
    File.write(configuration = File.join(@folder, "tmux.conf"), CONFIGURATION)
    @environment = HighballServer::ENVIRONMENT.merge({ "TMUX" => nil, "LANG" => "C.UTF-8" }, environment)
    tmux("-f", configuration, "new-session", "-d", "-x", columns.to_s, "-y", rows.to_s, *command)
  end

  # `Enter`, `Escape`, `Up`, `y`…
  def press(*keys) = tmux("send-keys", *keys)

  def resize(columns, rows) = tmux("resize-window", "-x", columns.to_s, "-y", rows.to_s)

  # What is on the screen, a line each; with `colours`, as escape sequences, of which a colour has the short form.
  def screen(colours: false)
    text = tmux("capture-pane", "-p", *("-e" if colours)).force_encoding("UTF-8")
    text.gsub(/(?<=[\[;])38;5;([0-7])(?=[;m])/, '3\1')
  end

  # Waits until the screen matches: the match.
  def see(pattern)
    Deadline.wait("#{pattern.inspect} on the screen", within: WITHIN) { pattern.match(screen) }
  rescue Deadline::Missed => e
    raise Deadline::Missed, "#{e.message}:\n#{screen}"
  end

  # Waits for the command's end.
  def wait = Deadline.wait("the end of the command", within: WITHIN) { fact("pane_dead") == "1" }

  def finish
    tmux("kill-server")
  rescue RuntimeError
    nil # it has ended
  ensure
    FileUtils.rm_rf(@folder)
  end

  private

  def fact(name) = tmux("display-message", "-p", "\#{#{name}}").chomp

  def tmux(*arguments)
    output, ended = Open3.capture2e(@environment, "tmux", "-u", "-S", File.join(@folder, "socket"), *arguments)
    raise "tmux #{arguments.join(' ')}: #{output}" unless ended.success?

    output
  end
end
