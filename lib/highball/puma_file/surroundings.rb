# frozen_string_literal: true

module Highball
  class PumaFile
    # What a Puma configuration finds around it, as with Puma: constants of Puma, and those of Ruby's libraries that
    # Puma has loaded by then. A library is loaded when the file uses it. By then the application's gems are chosen.
    module Surroundings
      # The release of Puma whose statements and constants are known.
      VERSION = "8.0.2"

      # Constants of the libraries that Puma 5 to 8 load before they evaluate a file.
      LIBRARIES = {
        "date" => %i[Date DateTime], "delegate" => %i[Delegator SimpleDelegator], "etc" => %i[Etc],
        "fileutils" => %i[FileUtils], "forwardable" => %i[Forwardable SingleForwardable], "ipaddr" => %i[IPAddr],
        "open3" => %i[Open3], "optparse" => %i[OptionParser OptParse], "set" => %i[Set], "stringio" => %i[StringIO],
        "socket" => %i[Addrinfo BasicSocket IPSocket Socket SocketError TCPServer TCPSocket UDPSocket UNIXServer
                       UNIXSocket],
        "tempfile" => %i[Tempfile], "uri" => %i[URI]
      }.freeze

      # Methods of these libraries that belong to no constant of theirs, as they appear in a file.
      METHODS = {
        "set" => /\.to_set\b/, "tmpdir" => /\bDir\.(?:mk)?tmpdir\b/,
        "time" => /\bTime\.(?:parse|strptime)\b|\.(?:iso8601|xmlschema|httpdate|rfc2822)\b/,
        "uri" => /\bURI\s*\(/
      }.freeze

      # What a file may expect because `rails server` loads Rails before it, which `puma` does not.
      OF_RAILS = %i[Rails ActiveRecord ActiveSupport].freeze

      module_function

      # Provides the libraries to this text, and to what it requires.
      def provide_libraries(text)
        LIBRARIES.each do |library, names|
          names.each { |name| Object.autoload(name, library) unless Object.const_defined?(name) }
        end
        METHODS.each { |library, pattern| require library if pattern.match?(text) }
      end

      # What to do about a constant that is not there; nil: nothing is known.
      def remedy_for(name)
        return unless OF_RAILS.include?(name)

        "#{name} is not loaded when this file is read: use paths such as File.expand_path(\"..\", __dir__), or do it " \
          "in a hook (before_fork)"
      end
    end

    # `Puma` in a Puma configuration. It has what files ask Puma for; the rest is named when a file uses it.
    #
    # Only the file sees it: other code of the application is not to believe that Puma serves it.
    module PumaModule
      # `Puma::Const`, and `Const`, which files can name as well.
      module Const
        PUMA_VERSION = VERSION = Surroundings::VERSION
        CODE_NAME = "Highball"
        PUMA_SERVER_STRING = "puma #{VERSION} #{CODE_NAME}".freeze
      end

      # `Puma::Configuration`.
      module Configuration
        DEFAULTS = {
          binds: ["tcp://0.0.0.0:9292"], environment: "development", first_data_timeout: 30, log_requests: false,
          max_threads: 5, min_threads: 0, persistent_timeout: 65, rackup: "config.ru", tcp_host: "0.0.0.0",
          tcp_port: 9292, worker_boot_timeout: 60, worker_check_interval: 5, worker_shutdown_timeout: 30,
          worker_timeout: 60, workers: 0
        }.freeze
      end

      # `Puma::Plugin.create` in a file.
      module Plugin
        def self.create
          PumaFile.current&.note("Puma::Plugin.create", "The plugin does not run.", PumaStatements::OTHER_PLUGIN)
        end
      end

      HAS_FORK = HAS_SSL = HAS_UNIX_SOCKET = true
      IS_JRUBY = IS_WINDOWS = false
      IS_MRI = true
      IS_OSX = RUBY_PLATFORM.include?("darwin")
      IS_LINUX = !IS_OSX

      # Names of Puma that have a counterpart.
      INSTEAD = {
        stats: "`highball status --json` has Highball's figures",
        stats_hash: "`highball status --json` has Highball's figures",
        LogWriter: "write to $stderr, which is in Highball's log",
        Events: "write to $stderr, which is in Highball's log",
        Launcher: "`highball restart`, `highball upgrade` and `highball stop` do what its methods did",
        Server: "`highball status --json` has what it knew",
        Cluster: "`highball status --json` has what it knew"
      }.freeze

      class << self
        def jruby? = IS_JRUBY
        def windows? = IS_WINDOWS
        def mri? = IS_MRI
        def osx? = IS_OSX
        def linux? = IS_LINUX
        def forkable? = true
        def ssl? = true
        def abstract_unix_socket? = true
        def set_thread_name(name) = Thread.current.name = name # rubocop:disable Naming/AccessorMethodName -- Puma's
        def cli_config = PumaFile.config

        # The real Puma, where the application has loaded it, has everything else.
        def const_missing(name)
          return ::Puma.const_get(name) if defined?(::Puma)

          raise NameError.new(missing("Puma::#{name}", name), name)
        end

        def method_missing(name, ...)
          return ::Puma.public_send(name, ...) if defined?(::Puma)

          raise NameError.new(missing("Puma.#{name}", name), name)
        end

        def respond_to_missing?(name, all = false) = defined?(::Puma) ? ::Puma.respond_to?(name, all) : false

        private

        def missing(written, name)
          "#{written} is Puma's, and Highball serves this application: " +
            (INSTEAD[name] || "remove it, or ask `defined?(::Puma)` first")
        end
      end
    end
  end
end
