# frozen_string_literal: true

require_relative "../highball"
require_relative "binary"
require_relative "given_path"
require_relative "host_system"
require_relative "narrowing"
require_relative "rails_server"

module Highball
  # The handler for Rack and Rackup: `rackup -s highball` and `rails server -u highball` call it. So does `rails server`
  # where Highball is the default (Highball::DefaultHandler), by way of a module with the name of the server.
  #
  # Where the application has a config.ru, this process becomes `highball serve` on its folder, under the same
  # process id. Given only an application object, this process is its mold (Highball::CallerMold). Elsewhere than on
  # Linux, Puma serves it in this process (Highball::DevelopmentServer).
  module Handler
    # Options of `highball serve` by the names that callers give them. `wc` and `tc` are Agoo's names.
    OPTIONS = {
      "--bind" => %i[Host], "--port" => %i[Port], "--environment" => %i[environment], "--pidfile" => %i[pid],
      "--workers" => %i[workers wc], "--threads" => %i[threads Threads tc],
      "--early-hints" => %i[early_hints]
    }.freeze
    # Options for which `rails server` has defaults; the user's configuration takes precedence over those.
    WEAK = %i[Host Port].freeze
    # What callers give to every server, and what is not Highball's affair.
    OF_CALLERS = %i[user_supplied_options AccessLog].freeze

    extend self

    # Serves the application until it is stopped. Yields itself, as other handlers do their servers.
    def run(app, **options)
      yield self if block_given?
      return serve_by_puma(app, options) unless HostSystem.linux?

      folder = folder_of(options)
      arguments = arguments_for(options)
      become_highball(arguments, folder, options) if folder

      serve_object(app, arguments)
    end

    # Ends the run of an application object. (With a config.ru, signals go to `highball` itself.)
    def shutdown
      HostSystem.linux? ? @mold&.stop : DevelopmentServer.stop
    end

    # The options for `rackup -O`.
    def valid_options
      {
        "Host=HOST" => "Address to listen on, or unix:/path",
        "Port=PORT" => "Port to listen on",
        "workers=N" => "Worker processes, or auto (also wc=N)",
        "threads=N" => "Threads in each worker (also tc=N)",
        "early_hints=on" => "Whether the application may send early hints"
      }
    end

    # The command line for these options.
    def arguments_for(options)
      refuse_lost(options)
      OPTIONS.flat_map do |name, keys|
        key = keys.find { |candidate| given?(options, candidate) } or next []
        [name, value(key, options[key])]
      end
    end

    # The folder whose config.ru the caller has read the application from. (A caller that runs as a daemon has changed
    # to `/` by now.)
    def folder_of(options)
      config = options[:config] or return
      places = [GivenPath.folder, Dir.pwd, *(::Rails.root if defined?(::Rails.root)), *ENV.fetch("PWD", nil)]
      files = places.map { |place| File.expand_path(config, place) }
      file = files.find { |path| File.basename(path) == "config.ru" && File.file?(path) }
      GivenPath.of(File.dirname(file)) if file
    end

    private

    # A blank address, and an option that Highball does not have here.
    def refuse_lost(options)
      raise ArgumentError, "Highball: the address is blank: name one, such as 127.0.0.1" if options[:Host]&.to_s == ""

      known = OPTIONS.values.flatten + OF_CALLERS
      asked = options.reject { |name, value| known.include?(name.to_sym) || !value } # false asks for nothing
      lost = asked.keys.find { |name| Narrowing.may?(name) } or return
      raise ArgumentError, "Highball: there is no option #{lost} here: write it into config/highball.toml, or into a " \
                           "variable (docs/configuration.md). `rackup -O` has #{valid_options.keys.join(', ')}"
    end

    # Under the same process id. Ruby does not write what it has buffered when another program takes its place.
    def become_highball(arguments, folder, options)
      show_log = { true => "on", false => "off" }[options[:log_stdout]]
      [$stdout, $stderr].each(&:flush)
      remove_pid_file(options[:pid])
      exec(Binary.environment.merge("HIGHBALL_SHOW_LOG" => show_log), Binary.path, "serve", *arguments, folder)
    end

    # The file that Rack has written for this process. Highball writes it again as soon as it can remove it at its end.
    # A signal before that would leave the file behind.
    def remove_pid_file(path)
      File.delete(path) if path && File.file?(path) && File.read(path).to_i == Process.pid
    end

    # The caller has written its PID file, and removes it.
    def serve_by_puma(app, options)
      require_relative "development_server"
      words = arguments_for(options.except(:pid))
      DevelopmentServer.run(app, DevelopmentServer::Options.new(DevelopmentServer::Arguments.new(words).options))
    rescue DevelopmentServer::Invalid => e
      abort("highball: #{e.message}")
    end

    def given?(options, key)
      return false if options[key].nil? || options[key].to_s.empty?

      chosen = options[:user_supplied_options]
      chosen.nil? || chosen.include?(key) || !WEAK.include?(key)
    end

    def value(key, value)
      case key
      when :pid then GivenPath.absolute(value)
      when :Threads then value.to_s[/\d+\z/] # "0:16" for Puma
      when :early_hints then ["on", true].include?(value) ? "on" : "off"
      when :Host then value.to_s.sub(/\A\*\z/, "0.0.0.0")
      else value.to_s
      end
    end

    def serve_object(app, arguments)
      require_relative "caller_mold"
      @mold = CallerMold.new(app, arguments)
      status = @mold.start
      exit(status.exitstatus || 1) unless status.success?
    ensure
      @mold = nil
    end
  end

  RailsServer.install if HostSystem.linux? && defined?(::Rails::Server)
end
