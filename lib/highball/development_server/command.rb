# frozen_string_literal: true

require_relative "../development_server"
require_relative "own_gems"

module Highball
  module DevelopmentServer
    # `highball` where Highball itself does not run: serves development, and says what the rest needs.
    class Command
      HELP = <<~TEXT.freeze
        Highball, an application server for Ruby. Highball itself runs on Linux. On %<system>s
        this command serves development by Puma.

        Usage: highball [OPTIONS] [PATH]
               highball doctor [--json] [OPTIONS] [PATH]

        Options that have an effect here:
          -p, --port PORT           TCP port [default: 3000]
          -b, --bind ADDRESS        Address to listen on, such as 0.0.0.0 or unix:/path [default: 127.0.0.1]
          -e, --environment NAME    development or test [default: development]
          -t, --threads N           Threads, or a range such as 3..5
          -c, --config FILE         Configuration file [default: config/highball.toml]
              --puma-config on|off  Whether config/puma.rb counts [default: on]
              --early-hints on|off  Whether the application may send early hints [default: off]
              --access-log -|none   Whether each request is logged
              --pidfile FILE        File for the process id
          -h, --help                This text
          -V, --version             The version

        Only Linux has the other options, and these commands:
          %<commands>s
        See #{PAGE}.
      TEXT
      # These are the same everywhere, or have a form for here.
      HERE = %w[serve doctor].freeze
      # The environment's names.
      ENVIRONMENTS = %w[RAILS_ENV RACK_ENV APP_ENV].freeze

      def initialize(words)
        @words = words
        @from = Dir.pwd
      end

      def run
        @arguments = Arguments.new(@words)
        case @arguments.command
        when "help" then print format(HELP, system: HostSystem.name, commands: other_commands)
        when "version" then puts version
        when "serve" then serve
        when "doctor" then doctor
        else abort("highball: #{@arguments.command} needs Linux, and this is #{HostSystem.name}: Puma serves " \
                   "development here (#{PAGE})")
        end
      rescue Invalid, NoPuma => e
        abort("highball: #{e.message}")
      end

      # Loads the application of this folder, with its gems: [the App, the Options].
      def boot
        enter
        add_own_gems = OwnGems.note
        App.set_up_gems
        add_own_gems.call
        options = options_here
        ENVIRONMENTS.each { |name| ENV[name] = options.environment }
        yield options if block_given?
        App.load(App::FOLDER, App.find(AppFolder.new(Dir.pwd, @file)))
      end

      # Reads the command line, the environment and the file.
      def options_here = Options.new(@arguments.options, from: @from)

      private

      def other_commands = (COMMANDS - HERE).each_slice(8).map { |some| some.join(", ") }.join(",\n  ")

      def version = "highball #{VERSION} (#{HostSystem.name}: #{NOTE})"

      def serve
        options = nil
        app = boot do |found|
          options = found
          abort("highball: #{DevelopmentServer.refusal}") if options.production?
        end
        DevelopmentServer.run(app.rack_app, options)
      rescue Invalid, NoPuma
        raise
      rescue StandardError, ScriptError => e
        abort("highball: the application did not boot\n\n#{Report.new(e).text}")
      end

      def doctor
        require_relative "doctor"
        exit(Doctor.new(self, @arguments).run)
      end

      # Changes to the application's folder. What Puma starts again, at `bin/rails restart`, begins there.
      def enter
        path = @arguments.paths.first || "."
        raise Invalid, "only Linux serves several applications: start each alone" if @arguments.paths.length > 1
        raise Invalid, "there is no #{path}" unless File.exist?(path)

        path = File.expand_path(path)
        @file = File.basename(path) if File.file?(path)
        ARGV.map! { |word| word == @arguments.paths.first ? path : word }
        Dir.chdir(@file ? File.dirname(path) : path)
        require_relative "../app" # which notes the folder
        require_relative "report"
      end
    end
  end
end
