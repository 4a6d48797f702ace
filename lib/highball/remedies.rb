# frozen_string_literal: true

module Highball
  # What to do about the exceptions that stop an application from booting: a table, read from the top. Classes
  # stand there by name, because most of them are not loaded.
  module Remedies
    # One row: the names of exception classes, what their message has to match, and the advice.
    Rule = Struct.new(:classes, :pattern, :advice) do
      def fits?(exception)
        names = exception.class.ancestors.map(&:name)
        (classes.empty? || classes.any? { |name| names.include?(name) }) &&
          (pattern.nil? || pattern.match?(exception.message.to_s))
      end

      def for(exception) = advice.respond_to?(:call) ? advice.call(exception) : advice
    end

    def self.rule(*classes, advice, pattern: nil) = Rule.new(classes, pattern, advice)

    MISSING_FILE = lambda do |error|
      path = error.path || error.message[/-- (\S+)/, 1]
      next "A file to be loaded is missing; the message says which." unless path
      next "#{path} does not exist: correct the path, or put the file back." if path.start_with?("/", ".")

      gem = path.split("/").first
      "If #{path} is part of a gem, put it into the Gemfile and run: bundle install " \
        "(without a Gemfile: gem install #{gem}). If it is a file of your own, load it by require_relative."
    end

    # Built once; nothing here is loaded before it is needed.
    RULES = [
      rule("Highball::ExtensionMissing", "Build it: bin/setup (bin/highball does it by itself)."),
      rule("Highball::App::NotFound",
           "Give the folder of an application: one with a config.ru, such as " \
           "`run ->(env) { [200, {}, [\"hello\"]] }`, or with a config/environment.rb (Rails)."),
      rule("Highball::App::NotAnApp", "config.ru has to end in `run`, with an object that answers to `call`."),
      rule("Let config.ru end in `run` and the application, such as: run Rails.application",
           pattern: /missing run or map statement/),
      rule("Bundler::GemNotFound", "Install the gems of the Gemfile: bundle install"),
      rule("Bundler::GitError", "Fetch the gems that come from git: bundle install"),
      rule("Bundler::GemfileNotFound", "Check BUNDLE_GEMFILE: it names a Gemfile that does not exist."),
      rule("Bundler::GemfileError", "Correct the Gemfile at the place that the message names."),
      rule("Bundler::RubyVersionMismatch",
           "Use the Ruby version that the Gemfile asks for (--ruby names an interpreter), or change it there."),
      rule("Bundler::PermissionError", "Let this user read and write the file that the message names."),
      rule("Bundler::BundlerError", "See what Bundler says: bundle check; bundle install"),
      rule("Gem::LoadError", "Let Bundler choose the gems: put the gem into the Gemfile and run: bundle install"),
      rule("SyntaxError", "Correct the syntax at the place that the message names."),
      rule("ActiveRecord::NoDatabaseError", "Create the database: bin/rails db:prepare"),
      rule("ActiveRecord::PendingMigrationError", "Run the migrations: bin/rails db:migrate"),
      rule("ActiveRecord::AdapterNotSpecified", "ActiveRecord::AdapterNotFound",
           "Describe the database for this environment in config/database.yml."),
      rule("ActiveRecord::ConnectionNotEstablished", "PG::ConnectionBad", "Mysql2::Error::ConnectionError",
           "SQLite3::CantOpenException",
           "Start the database, and compare host, user and path in config/database.yml with it."),
      rule("ActiveRecord::StatementInvalid",
           "If a table is missing, create it: bin/rails db:prepare. The application asks for it while it boots."),
      rule("Create config/database.yml, or set DATABASE_URL.",
           pattern: %r{load database configuration|config/database\.yml}),
      rule("ActiveSupport::EncryptedFile::MissingKeyError", "ActiveSupport::MessageEncryptor::InvalidMessage",
           "Provide the key: config/master.key, or RAILS_MASTER_KEY in the environment."),
      rule("ArgumentError", "Set SECRET_KEY_BASE in the environment, or add it to the credentials: " \
                            "bin/rails credentials:edit", pattern: /secret_key_base/),
      rule("LoadError", MISSING_FILE),
      rule("Errno::EACCES", "Let this user read (or write) the file that the message names."),
      rule("Errno::ENOENT", "Create the file or folder that the message names, or correct its path."),
      rule("Errno::ENOSPC", "Free some disk space."),
      rule("Errno::ECONNREFUSED", "Start the service that the application connects to while it boots."),
      rule("NoMemoryError", "Give the machine or container more memory."),
      rule("SystemExit", "The application ended the process while it was loaded. Look for `exit` or `abort`, and " \
                         "at what it printed above."),
      rule("SignalException", "Somebody sent the mold a signal while it booted; start again.")
    ].freeze

    # The advice for an exception, or for what caused it; nil if there is none.
    def self.for(exception)
      while exception
        rule = RULES.find { |candidate| candidate.fits?(exception) }
        return rule.for(exception) if rule

        exception = exception.cause
      end
    end
  end
end
