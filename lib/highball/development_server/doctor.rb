# frozen_string_literal: true

require "socket"

module Highball
  module DevelopmentServer
    # `highball doctor` where Highball itself does not run: boots the application once, and looks for what would be a
    # problem here or on a server. The checks have the form that they have on Linux.
    class Doctor
      MARKS = { ok: "ok     ", warning: "warning", failed: "FAILED " }.freeze
      # The number of threads that a database pool has to be large enough for, as on Linux.
      THREADS = 3
      PLATFORMS = %w[x86_64-linux aarch64-linux].freeze

      def initialize(command, arguments)
        @command = command
        @arguments = arguments
        @checks = []
      end

      # Prints the checks. Returns whether the application would be served.
      def run
        examine
        @arguments.json? ? print_json : print_list
        @checks.none? { |check| check[:state] == :failed }
      end

      private

      def examine
        add(:ok, "system", "#{HostSystem.name}: #{NOTE}")
        app = @command.boot { |options| examine_options(options) }
        add(:ok, "application", "#{app.framework} with Ruby #{RUBY_VERSION} and Puma #{puma_version}")
        platforms
        find_problems
        add(:ok, "linux", "`highball doctor --environment production` on Linux, such as in CI, checks the rest")
      rescue Invalid
        raise
      rescue StandardError, ScriptError => e
        not_booted(e)
      end

      def examine_options(options)
        raise Invalid, DevelopmentServer.refusal if options.production?

        add(:ok, "configuration", "#{options.folder} for #{options.environment}")
        left_out = options.left_out
        add(:ok, "options", left_out) if left_out
        address(*options.address)
      end

      def address(host, port)
        TCPServer.open(host, Integer(port)).close
        add(:ok, "address", "http://#{host}:#{port} is free")
      rescue Errno::EADDRINUSE
        add(:failed, "address_in_use", "http://#{host}:#{port}: another program is using it",
            remedy: "Stop the program that uses it, or choose another address with --port or --bind.",
            command: "lsof -nP -iTCP:#{port} -sTCP:LISTEN")
      rescue SystemCallError, SocketError => e
        add(:failed, "address", "http://#{host}:#{port}: #{e.message}", remedy: "Choose another address with --bind.")
      end

      # Bundler on a server installs only what the lock file has for its platform.
      def platforms
        lock = AppFolder::LOCK_FILES.find { |name| File.file?(name) } or return
        locked = Text.read(lock, 1 << 20)[/^PLATFORMS\n((?:  .+\n)+)/, 1].to_s.split
        return add(:ok, "platforms", "#{lock} has #{locked.join(', ')}") if locked.grep(/linux/).any?

        add(:warning, "platforms", "#{lock} has no platform of Linux: servers could not install its gems",
            remedy: "Add the platforms of your servers.", command: "bundle lock --add-platform #{PLATFORMS.join(' ')}")
      end

      # What a fork does not inherit or must not share, and the like.
      def find_problems
        require_relative "../checkup"
        Checkup.new(examine: THREADS.to_s).findings.each do |found|
          at = [found[:file], found[:line]].compact.join(":")
          add(:warning, found[:cause].to_s, found[:what], at: (at unless at.empty?), remedy: found[:remedy],
                                                          command: found[:command])
        end
      end

      def puma_version
        DevelopmentServer.handler
        require "puma/const"
        ::Puma::Const::PUMA_VERSION
      end

      def not_booted(exception)
        @report = exception.is_a?(NoPuma) ? nil : Report.new(exception)
        add(:failed, "application", exception.is_a?(NoPuma) ? exception.message : "it did not boot")
      end

      def add(state, name, what, **more)
        @checks << { name: name, state: state, what: what, at: nil, remedy: nil, command: nil, **more }
      end

      def print_list
        @checks.each do |check|
          puts "#{MARKS[check[:state]]}  #{check[:name]}: #{check[:what].lines.first.to_s.chomp}"
          next if check[:state] == :ok

          { "at" => :at, "what to do" => :remedy, "command" => :command }.each do |name, field|
            puts "           #{name}: #{check[field]}" if check[field]
          end
        end
        print "\nThe application did not boot:\n\n#{@report.text}" if @report
      end

      def print_json
        worst = %i[failed warning ok].find { |state| @checks.any? { |check| check[:state] == state } }
        puts Message.encode({ state: worst, checks: @checks, diagnosis: @report&.fields })
      end
    end
  end
end
