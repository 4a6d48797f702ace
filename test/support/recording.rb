#!/usr/bin/env ruby
# frozen_string_literal: true

# Records the film of the README: `ruby test/support/recording.rb FILE.svg`. In tmux, a developer deploys a mistake into
# the blog while visitors send requests, and then looks for a request that does not end. Everything in the film happens
# while it is recorded.

require "fileutils"
require "open3"
require "shellwords"
require_relative "highball_server"
require_relative "terminal_film"

# One server, its visitors, and two terminals below each other.
class Recording
  COLUMNS = 110
  SHELL_ROWS = 20
  VISITOR_ROWS = 3
  BLOG = "/srv/blog"
  LOOK = 0.1 # seconds
  WAIT = 2 # seconds that the film shows of a longer wait for a command
  KEY = 0.045
  # A report that waits for a bank that does not answer.
  REPORT = <<~RUBY
    # frozen_string_literal: true

    require "socket"

    class ReportsController < ApplicationController
      BANK = Socket.pair(:UNIX, :STREAM)

      def show
        render plain: balance_of(params[:id])
      end

      private

      def balance_of(account)
        BANK.first.gets
      end
    end
  RUBY
  VISITORS = <<~'RUBY'
    require "net/http"
    address, count = ARGV
    statuses = Hash.new(0)
    lock = Mutex.new
    Array.new(count.to_i) do |number|
      Thread.new do
        loop do
          status = begin
            http = Net::HTTP.new("127.0.0.1", URI(address).port)
            http.max_retries = 0
            http.get("/").code
          rescue StandardError
            "failed"
          end
          lock.synchronize { statuses[status] += 1 }
          sleep 0.02 + (number * 0.003)
        end
      end
    end
    $stdout.sync = true
    loop do
      failed = statuses.reject { |status, _| status == "200" }.values.sum
      print "\e[H\e[2mrequests of visitors\e[0m  \e[1m#{statuses['200'].to_s.rjust(6)}\e[0m answered   " \
            "#{failed.zero? ? "\e[32m" : "\e[31m"}\e[1m#{failed.to_s.rjust(3)} failed\e[0m\e[K"
      sleep 0.2
    end
  RUBY

  def initialize(file)
    @file = file
    @film = TerminalFilm.new(COLUMNS, SHELL_ROWS + 1 + VISITOR_ROWS)
    @socket = "highball-recording-#{Process.pid}"
    @caption = ""
  end

  def take
    prepare
    server = HighballServer.start(BLOG, "--admin", "127.0.0.1:0", workers: 3, threads: 3) # for P50 and P95
    open_terminals(server)
    film
    File.write(@file, @film.svg(elapsed.ceil + 1, still: @still, title: TITLE))
  ensure
    tmux("kill-server") if @environment
    server&.finish
    FileUtils.rm_rf(BLOG) if @prepared
  end

  TITLE = "A terminal: a deploy with a mistake is refused while all requests are answered; then highball top names " \
          "the line at which a request waits"

  private

  def prepare
    Dir.mkdir(BLOG) # fails if the folder exists, so that no other one is changed
    @prepared = true
    FileUtils.cp_r("#{HighballServer::EXAMPLES}/blog/.", BLOG)
    File.write("#{BLOG}/app/controllers/reports_controller.rb", REPORT)
    routes = "#{BLOG}/config/routes.rb"
    File.write(routes, File.read(routes).sub("resources :posts", "resources :reports, only: :show\n  \\0"))
  end

  def open_terminals(server)
    bin = File.join(server.dir, "bin")
    Dir.mkdir(bin)
    File.symlink(HighballServer::BINARY, File.join(bin, "highball"))
    @environment = HighballServer::ENVIRONMENT.merge("LANG" => "C.UTF-8")
    @address = "http://127.0.0.1:#{server.port}"
    shell = ["env", "PATH=#{bin}:#{ENV.fetch('PATH')}", "PS1=#{PROMPT}", "bash", "--norc", "--noprofile"]
    pane("shell", SHELL_ROWS, *shell)
    pane("visitors", VISITOR_ROWS, "ruby", "-e", VISITORS, "#{@address}/", "4")
  end

  PROMPT = "\\[\\e[1;34m\\]~/blog\\[\\e[0m\\] $ "

  def pane(name, rows, *command)
    tmux("-f", File::NULL, "new-session", "-d", "-s", name, "-x", COLUMNS.to_s, "-y", rows.to_s, "-c", BLOG,
         Shellwords.join(command))
    tmux("set-option", "-t", name, "status", "off")
  end

  TYPO = "sed -i 's/validates/valdiates/' app/models/post.rb"

  # The first picture has the first command, typed, and visitors.
  def film
    tmux("send-keys", "-t", "shell", "-l", TYPO)
    Deadline.wait("a command and visitors") { tmux("capture-pane", "-p", "-t", "shell").include?(TYPO) && visited? }
    @started = Deadline.now
    @cut = 0
    caption "Deploy a version with a typo, while visitors send requests"
    watch 2.5
    tmux("send-keys", "-t", "shell", "Enter")
    watch 0.8
    enter "highball restart"
    watch_until(/restart again/)
    caption "Refused: the old version goes on serving, and no request has failed"
    @still = elapsed + 1
    watch 5
    enter "sed -i 's/valdiates/validates/' app/models/post.rb && highball restart"
    watch_until(/generation \d+ serves/)
    caption "Fixed: the new version replaces the old one, and no request has failed"
    watch 2.5
    stuck
  end

  def visited? = tmux("capture-pane", "-p", "-t", "visitors").match?(/[1-9]\d+ answered/)

  def stuck
    Thread.new { Net::HTTP.get(URI("#{@address}/reports/4711")) rescue nil } # rubocop:disable Style/RescueModifier -- it ends with the server
    caption "A visitor waits. For what?"
    enter "clear"
    watch 1
    enter "highball top"
    watch_until(%r{≤ [\d.]+ ms +≤ [\d.]+ ms.*/reports/4711}m)
    watch 2
    press "Enter"
    watch_until(/reports_controller\.rb:\d+/)
    caption "highball top names the line at which the request waits"
    watch 5
    tmux("send-keys", "-t", "shell", "q")
  end

  def enter(line)
    line.each_char do |letter|
      tmux("send-keys", "-t", "shell", "-l", letter)
      watch KEY
    end
    watch 0.3
    tmux("send-keys", "-t", "shell", "Enter")
  end

  def press(key)
    tmux("send-keys", "-t", "shell", key)
    watch 1
  end

  # The film shows this time, however long the looks took.
  def watch(seconds)
    @shown_until = elapsed + seconds
    loop do
      look
      break if elapsed >= @shown_until

      sleep [LOOK, @shown_until - elapsed].min.clamp(0.001, LOOK)
    end
    @cut += elapsed - @shown_until
    @shown_until = nil
  end

  def watch_until(pattern)
    screen = ""
    Deadline.wait("#{pattern.inspect} in the terminal", within: 120) do
      waited = elapsed - @changed
      @cut += waited - WAIT if waited > WAIT
      look
      screen = tmux("capture-pane", "-p", "-t", "shell")
      screen.match?(pattern)
    end
  rescue Deadline::Missed => e
    raise Deadline::Missed, "#{e.message}:\n#{screen}"
  end

  def look
    shell = captured("shell", SHELL_ROWS)
    @changed = elapsed if shell != @shell
    @shell = shell
    @film.add([elapsed, *@shown_until].min, @caption, shell + ["─" * COLUMNS] + captured("visitors", VISITOR_ROWS))
  end

  def captured(name, rows)
    style = "" # tmux writes a style once, where several lines have it
    lines = tmux("capture-pane", "-e", "-p", "-t", name).lines(chomp: true).first(rows).map do |line|
      line = style + line
      style = line.scan(/\e\[[\d;:]*m/).join[/(?:.*(?=\e\[0?[;m]))?(.*)/m, 1]
      line
    end
    lines + ([""] * (rows - lines.size))
  end

  def caption(text) = @caption = text
  def elapsed = (Deadline.now - @started - @cut).round(2)

  def tmux(*words)
    output, ended = Open3.capture2e(@environment, "tmux", "-u", "-L", @socket, *words)
    abort "tmux #{words.join(' ')}: #{output}" unless ended.success? || words == ["kill-server"]
    output
  end
end

abort "Usage: ruby test/support/recording.rb FILE.svg" unless ARGV.size == 1
require "net/http"
Recording.new(*ARGV).take
