# frozen_string_literal: true

require "fileutils"
require "socket"
require_relative "deadline"
require_relative "free_port"
require_relative "http_connection"

# Another web server (nginx, Apache, Caddy, HAProxy, lighttpd) on a free port, with a configuration that
# `highball config` has printed. The main configuration, which usually comes with the package, is written here.
class WebServer
  # It ended before it listened.
  class Ended < StandardError; end

  BEGINS_WITHIN = 60 # seconds
  TRIES = 3 # another program may take the free port first
  ENDS_WITHIN = 20
  MODULES = "/usr/lib/apache2/modules"

  WHOLE = "cat DIR/main.conf DIR/site.conf > DIR/whole.conf &&"

  # `main` is the main configuration, which includes the file at `site`. `listens` matches the lines of the printed one
  # with its port: the first of them stays, with the test's port. `check` is the program's own check of a configuration.
  Program = Struct.new(:name, :commands, :main, :listens, :command, :check, keyword_init: true)

  PROGRAMS = [
    Program.new(
      name: "nginx", listens: ["listen 80;", "listen [::]:80;"], command: %w[nginx -e stderr -p DIR -c DIR/main.conf],
      check: %w[nginx -t -e stderr -p DIR -c DIR/main.conf],
      main: <<~CONF
        user root root; # ignored unless root starts it
        daemon off;
        pid DIR/nginx.pid;
        error_log stderr;
        events {}
        http {
          access_log off;
          client_body_temp_path DIR/body;
          proxy_temp_path DIR/proxy;
          fastcgi_temp_path DIR/fastcgi;
          uwsgi_temp_path DIR/uwsgi;
          scgi_temp_path DIR/scgi;
          include DIR/site.conf;
        }
      CONF
    ),
    Program.new(
      name: "apache2", listens: ["*:80"], command: %w[apache2 -DFOREGROUND -f DIR/main.conf],
      check: %w[apache2 -t -f DIR/main.conf],
      main: <<~CONF
        ServerRoot DIR
        DefaultRuntimeDir DIR
        PidFile DIR/apache.pid
        ServerName localhost
        Listen 127.0.0.1:PORT
        ErrorLog /dev/stderr
        LoadModule mpm_event_module #{MODULES}/mod_mpm_event.so
        LoadModule authz_core_module #{MODULES}/mod_authz_core.so
        LoadModule headers_module #{MODULES}/mod_headers.so
        LoadModule proxy_module #{MODULES}/mod_proxy.so
        LoadModule proxy_http_module #{MODULES}/mod_proxy_http.so
        LoadModule proxy_fcgi_module #{MODULES}/mod_proxy_fcgi.so
        # Root's Apache becomes this user.
        User www-data
        Group www-data
        Include DIR/site.conf
      CONF
    ),
    Program.new(
      name: "caddy", listens: ["http://probe.localhost"],
      command: %w[caddy run --adapter caddyfile --config DIR/main.conf],
      check: %w[caddy validate --adapter caddyfile --config DIR/main.conf],
      main: "{\n  admin off\n  http_port PORT\n  auto_https off\n}\nimport DIR/site.conf\n"
    ),
    Program.new(
      name: "haproxy", listens: ["bind :80", "bind [::]:80 v6only"],
      command: %w[haproxy -db -f DIR/main.conf -f DIR/site.conf],
      check: %w[haproxy -c -f DIR/main.conf -f DIR/site.conf], main: "global\n  maxconn 1000\n"
    ),
    Program.new(
      # The port stands in its main configuration alone. What is wrong in an included file does not count in its check:
      # the two are one file here.
      name: "lighttpd", listens: [], command: ["sh", "-c", "#{WHOLE} exec lighttpd -D -f DIR/whole.conf"],
      check: ["sh", "-c", "#{WHOLE} exec lighttpd -tt -f DIR/whole.conf"],
      main: <<~CONF
        server.modules = ()
        server.document-root = "DIR"
        server.upload-dirs = ("DIR")
        server.bind = "127.0.0.1"
        server.port = PORT
        server.errorlog = "/dev/stderr"
      CONF
    )
  ].to_h { |program| [program.name, program] }.freeze

  # The line with each program's address, which replaces the first of its `listens`.
  ON_PORT = { "nginx" => "listen 127.0.0.1:PORT;", "apache2" => "*:PORT", "caddy" => "http://probe.localhost:PORT",
              "haproxy" => "bind 127.0.0.1:PORT" }.freeze

  # What the program itself finds wrong with a printed configuration; nil if it accepts it.
  def self.problem(name, site)
    server = new(name, site, &:check)
    server.log unless server.ended_well? && !server.log.include?("unknown config-key") # lighttpd ignores it
  ensure
    server&.finish
  end

  # Starts one, and waits until it listens.
  def self.start(name, site)
    tries ||= 0
    server = new(name, site)
    server.wait_until_listening
    server
  rescue Ended
    server.finish
    (tries += 1) < TRIES ? retry : raise
  rescue StandardError
    server&.finish
    raise
  end

  attr_reader :port, :pid

  # `name` is that of the program's file, `site` the printed configuration. A block chooses another command of the
  # program.
  def initialize(name, site)
    @program = PROGRAMS.fetch(name)
    @dir = Dir.mktmpdir("highball-web")
    @port = FreePort.free_port
    File.write(File.join(@dir, "site.conf"), on_our_port(site))
    File.write(File.join(@dir, "main.conf"), filled(@program.main))
    @pid = Process.spawn({ "PATH" => "#{ENV.fetch('PATH')}:/usr/sbin", "HOME" => @dir },
                         *(block_given? ? yield(@program) : @program.command).map { |word| filled(word) },
                         in: File::NULL, %i[out err] => log_path, pgroup: true)
    @ended = Process.detach(@pid)
  end

  def ended_well?
    raise Deadline::Missed, "#{@program.name} did not end:\n#{log}" unless @ended.join(ENDS_WITHIN)

    @ended.value.success?
  end

  def wait_until_listening
    Deadline.wait("#{@program.name} to listen", within: BEGINS_WITHIN) do
      raise Ended, "#{@program.name} ended: #{@ended.value}\n#{log}" unless @ended.alive?

      Socket.tcp("127.0.0.1", @port) { true }
    rescue Errno::ECONNREFUSED
      false
    end
  end

  # A connection of a visitor from this address of the loopback network.
  def connect(from: "127.0.0.1", &block)
    HttpConnection.tcp(@port, from: from).use(&block)
  end

  def log
    File.read(log_path, encoding: "UTF-8").scrub
  end

  def finish
    Process.kill("TERM", @pid) if @ended.alive?
    Process.kill("KILL", -@pid) unless @ended.join(ENDS_WITHIN)
    @ended.join
  rescue Errno::ESRCH
    nil
  ensure
    FileUtils.rm_rf(@dir)
  end

  private

  def log_path
    File.join(@dir, "log")
  end

  def filled(text)
    text.gsub("DIR", @dir).gsub("PORT", @port.to_s)
  end

  def on_our_port(site)
    first, *others = @program.listens
    return site unless first
    raise "there is no `#{first}` in\n#{site}" unless site.include?(first)

    others.each { |line| site = site.sub(line, "") }
    site.sub(first, filled(ON_PORT.fetch(@program.name)))
  end
end
