# frozen_string_literal: true

require_relative "app_folder"
require_relative "exception_words"
require_relative "load_errors"
require_relative "version"

module Highball
  # Why applications do not boot, or do not answer: a table, read from the top. Each cause has a short name that never
  # changes, a remedy in a sentence, and a command if there is one. Exception classes are given by name, because most of
  # them are not loaded.
  module Causes
    # One row. `remedy` and `command` are texts, or are called with the ExceptionWords of the exception.
    Cause = Struct.new(:name, :classes, :pattern, :remedy, :command, keyword_init: true) do
      def fits?(error)
        (classes.empty? || classes.any? { |name| error.is?(name) }) && (pattern.nil? || pattern.match?(error.message))
      end

      # The same with texts for this exception.
      def of(error) = Found.new(name, text(remedy, error), text(command, error), error.quoted)

      private

      def text(words, error) = words.respond_to?(:call) ? words.call(error) : words
    end

    # A cause with its texts for one exception: its name, the remedy, and the command or nil; and what these two quote
    # of the exception.
    Found = Struct.new(:name, :remedy, :command, :quoted)

    # For exceptions that match no row.
    UNKNOWN = Found.new(:exception, nil, nil, [])

    def self.cause(name, classes, remedy:, command: nil, pattern: nil)
      Cause.new(name: name, classes: classes, pattern: pattern, remedy: remedy, command: command)
    end

    # The command for a Rails task, with the environment that is booted, so that it works on that database.
    def self.rails(task)
      environment = ENV.fetch("RAILS_ENV", "development")
      runner = File.exist?("bin/rails") ? "bin/rails" : "bundle exec rake"
      "#{"RAILS_ENV=#{environment} " unless environment == 'development'}#{runner} #{task}"
    end

    # The systemd service of a database, by the words in the message.
    SERVICES = { /pg|postgres|5432/i => "postgresql", /mysql|mariadb|3306/i => "mariadb",
                 /redis|6379/i => "redis-server",
                 /memcache|11211/i => "memcached", /mongo|27017/i => "mongod" }.freeze

    def self.start_service(error)
      text = "#{error.class_name} #{error.message} #{error.causes.first&.message}"
      name = SERVICES.find { |pattern, _service| pattern.match?(text) }&.last
      name && "sudo systemctl start #{name}"
    end

    # The user of this process, by name if it has one. (Etc is a gem, so it is required here and not at the top.)
    def self.user
      require "etc"
      Etc.getpwuid(Process.euid).name
    rescue LoadError, ArgumentError
      "with the number #{Process.euid}"
    end

    # Writes the smallest config/database.yml.
    DATABASE_YML = "printf 'development:\\n  adapter: sqlite3\\n  database: db/development.sqlite3\\n' " \
                   "> config/database.yml"

    FRAMEWORK = /(?:gem '|find )(?:rails|railties|sinatra|hanami|roda|grape|padrino|camping)\b/

    # Of a gem that is installed twice, RubyGems prefers the one with a platform.
    FROM_SOURCES = "gem uninstall --all --executables --force highball && gem install highball --platform ruby"
    # The same for the gem in a Gemfile.
    BUNDLE_FROM_SOURCES = %q(sed -i -E "s/^\s*gem ['\"]highball['\"](, *['\"][^'\"]*['\"])*/&, ) \
                          'force_ruby_platform: true/" Gemfile && bundle install'

    # What builds the extension: in a clone, in a bundle, for an installed gem.
    def self.extension_build
      return "bin/setup" if File.exist?(File.expand_path("../../bin/setup", __dir__))

      AppFolder.new.gem?("highball") ? BUNDLE_FROM_SOURCES : FROM_SOURCES
    end

    TABLE = [
      # --- Highball itself
      cause(:extension_missing, %w[Highball::ExtensionMissing],
            remedy: "Build Highball's Ruby extension for this Ruby.",
            command: ->(_) { extension_build }),
      cause(:no_app, %w[Highball::App::NotFound],
            remedy: "Give the folder of an application: one with a config.ru, or with a config/environment.rb " \
                    "(Rails).",
            command: %q(echo 'run ->(env) { [200, {}, ["hello"]] }' > config.ru)),
      cause(:not_an_app, %w[Highball::App::NotAnApp],
            remedy: "End config.ru with `run` and an object that responds to `call`."),
      cause(:not_an_app, [],
            pattern: /missing run or map statement/,
            remedy: "End config.ru with `run` and the application, for example: run Rails.application"),
      cause(:boot_timeout, %w[Highball::Journey::TookTooLong],
            remedy: "The boot hangs at this line; see the backtrace. If it only needs more time, raise the limit.",
            command: "highball --boot-timeout 300s"),

      # --- Gems
      cause(:framework_not_installed, %w[Bundler::GemNotFound Gem::MissingSpecError],
            pattern: FRAMEWORK,
            remedy: "Install the framework version that the Gemfile requires, or require an installed one.",
            command: "bundle install"),
      cause(:missing_gem, %w[Bundler::GemNotFound Bundler::GitError],
            remedy: "Install the gems of the Gemfile.",
            command: "bundle install"),
      cause(:gemfile, %w[Bundler::GemfileNotFound],
            remedy: "Check BUNDLE_GEMFILE: it names a Gemfile that does not exist.",
            command: "unset BUNDLE_GEMFILE"),
      cause(:gemfile, %w[Bundler::GemfileError Bundler::Dsl::DSLError],
            remedy: "Correct the Gemfile at the line that the message names.",
            command: "bundle check"),
      cause(:wrong_ruby, %w[Bundler::RubyVersionMismatch],
            remedy: "Use the Ruby version that the Gemfile requires, or change it there. (This is Ruby " \
                    "#{RUBY_VERSION}.)",
            command: "highball --ruby /path/to/ruby"),
      cause(:permission_denied, %w[Bundler::PermissionError],
            remedy: ->(_) { "Give the user #{user} read and write access to the file that the message names." },
            command: "ls -l"),
      cause(:gemfile_lock, %w[Bundler::LockfileError Bundler::ProductionError Bundler::VersionConflict
                              Bundler::SolveFailure Bundler::BundlerError],
            remedy: "Gemfile, Gemfile.lock and the installed gems do not match: install the gems and update the lock " \
                    "file.",
            command: "bundle install"),
      cause(:gemfile_lock, %w[Gem::LoadError],
            pattern: /already activated|not part of the bundle/,
            remedy: "Add the gem to the Gemfile, and install it, so that Bundler chooses its version.",
            command: "bundle install"),
      cause(:missing_gem, %w[Gem::LoadError],
            remedy: "Add the gem to the Gemfile, and install it.",
            command: "bundle install"),

      # --- Code
      cause(:syntax_error, %w[SyntaxError ActionView::SyntaxErrorInTemplate],
            remedy: "Correct the syntax at the line that the message names.",
            command: LoadErrors::CHECK_SYNTAX),
      cause(:native_extension, %w[LoadError],
            pattern: LoadErrors::NATIVE,
            remedy: "The gem was built for another Ruby, or a library that it needs is missing: rebuild it.",
            command: LoadErrors::REBUILD),
      cause(:another_version, %w[LoadError],
            pattern: %r{\Acannot load such file -- highball/},
            remedy: "The Highball that runs is version #{VERSION}, and does not have this file. If the Gemfile has a " \
                    "later version, let it take over.",
            command: "bundle exec highball upgrade"),
      cause(:missing_file, %w[LoadError],
            pattern: LoadErrors::PATH,
            remedy: LoadErrors::MISSING_FILE),
      cause(:missing_gem, %w[LoadError],
            remedy: LoadErrors::MISSING_GEM,
            command: LoadErrors::INSTALL),
      cause(:missing_constant, %w[NameError],
            pattern: /uninitialized constant|to define constant/,
            remedy: LoadErrors::MISSING_CONSTANT),
      cause(:wrong_encoding, %w[ArgumentError EncodingError RegexpError],
            pattern: /invalid byte sequence in |invalid multibyte|incompatible (?:character )?encoding/,
            remedy: "A text has bytes that are not valid in its encoding: save the file in UTF-8, or name its " \
                    "encoding where it is read. If the environment names no encoding, set LANG=C.UTF-8 there."),

      # --- Databases
      cause(:database_missing, %w[ActiveRecord::NoDatabaseError],
            remedy: "Create the database.",
            command: ->(_) { rails("db:create db:migrate") }),
      cause(:pending_migrations, %w[ActiveRecord::PendingMigrationError],
            remedy: "Run the migrations.",
            command: ->(_) { rails("db:migrate") }),
      cause(:database_config, %w[ActiveRecord::AdapterNotSpecified ActiveRecord::AdapterNotFound],
            remedy: "Describe the database for this environment in config/database.yml."),
      cause(:database_config, [],
            pattern: %r{load database configuration|config/database\.yml},
            remedy: "Write config/database.yml, or set DATABASE_URL.",
            command: DATABASE_YML),
      cause(:database_down, %w[ActiveRecord::ConnectionNotEstablished PG::ConnectionBad
                               Mysql2::Error::ConnectionError SQLite3::CantOpenException Redis::CannotConnectError],
            remedy: "Start the database, and check host, user and path in config/database.yml.",
            command: ->(error) { start_service(error) }),
      cause(:table_missing, %w[ActiveRecord::StatementInvalid],
            remedy: "If a table is missing, create it.",
            command: ->(_) { rails("db:prepare") }),

      # --- Secrets
      cause(:missing_master_key, %w[ActiveSupport::EncryptedFile::MissingKeyError
                                    ActiveSupport::EncryptedFile::InvalidKeyLengthError
                                    ActiveSupport::MessageEncryptor::InvalidMessage],
            remedy: "Provide the key of the credentials: config/master.key, or RAILS_MASTER_KEY in the environment.",
            command: "scp YOU@WHERE.IT.IS:APP/config/master.key config/master.key"),
      cause(:missing_secret_key_base, %w[ArgumentError],
            pattern: /secret_key_base/,
            remedy: "Set SECRET_KEY_BASE in the environment, or add it to the credentials.",
            command: "export SECRET_KEY_BASE=$(ruby -rsecurerandom -e 'puts SecureRandom.hex(64)')"),

      # --- The system
      cause(:permission_denied, %w[Errno::EACCES Errno::EPERM Errno::EROFS],
            remedy: lambda { |_|
              "The application runs as the user #{user}: give #{user} access to the file that the message names."
            },
            command: ->(error) { LoadErrors.look_at(error) }),
      cause(:missing_file, %w[Errno::ENOENT Errno::ENOTDIR],
            remedy: "Create the file or folder that the message names, or correct its path."),
      cause(:address_in_use, %w[Errno::EADDRINUSE],
            remedy: "Another program is using the port or socket that the application opens.",
            command: "ss -lptn"),
      cause(:disk_full, %w[Errno::ENOSPC Errno::EDQUOT],
            remedy: "Free some disk space.",
            command: "df -h ."),
      cause(:service_down, %w[Errno::ECONNREFUSED Errno::EHOSTUNREACH Errno::ETIMEDOUT SocketError],
            remedy: "Start the service that the application connects to.",
            command: ->(error) { start_service(error) }),
      cause(:out_of_memory, %w[NoMemoryError],
            remedy: "Give the machine or container more memory.",
            command: "free -m"),

      # --- The end of the process
      cause(:exit_called, %w[SystemExit],
            remedy: "The application ended the process while loading. Look for `exit` or `abort` at this line, and " \
                    "at its output."),
      cause(:signal, %w[SignalException Interrupt],
            remedy: "The mold received a signal while it booted; start it again.")
    ].freeze

    # The cause of an exception, or of what caused it: a Found.
    def self.of(exception)
      words = ExceptionWords.of(exception)
      [words, *words.causes].each do |error|
        row = TABLE.find { |candidate| candidate.fits?(error) }
        return row.of(error) if row
      end
      UNKNOWN
    end
  end
end
