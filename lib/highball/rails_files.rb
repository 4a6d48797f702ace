# frozen_string_literal: true

require_relative "detector"

module Highball
  # What the files and the environment of a Rails application tell about its boot, before it is loaded: credentials and
  # the database. Values are never repeated: they are secrets.
  class RailsFiles
    # The gems that Rails loads for a DATABASE_URL.
    ADAPTERS = {
      "postgres" => %w[pg], "postgresql" => %w[pg], "postgis" => %w[activerecord-postgis-adapter],
      "mysql2" => %w[mysql2], "mysql" => %w[mysql2], "trilogy" => %w[trilogy activerecord-trilogy-adapter],
      "sqlite3" => %w[sqlite3], "sqlite" => %w[sqlite3]
    }.freeze
    # The lines in config/application.rb that load ActiveRecord.
    USES_DATABASE = %r{^\s*require\s+["'](?:rails/all|active_record/railtie)["']}

    def initialize(folder, environment, variables = ENV)
      @folder = folder
      @environment = environment
      @variables = variables
    end

    def warnings
      return [] unless @folder.file?("config/application.rb") # a single-file application may set all this in code

      [credentials, database].compact
    end

    private

    def warning(...) = Detector::Warning.new(...)
    def given?(name) = !@variables[name].to_s.empty?

    # The environment's credentials take precedence over the common ones.
    def credentials
      file, key = [["config/credentials/#{@environment}.yml.enc", "config/credentials/#{@environment}.key"],
                   ["config/credentials.yml.enc", "config/master.key"]].find { |name, _| @folder.file?(name) }
      return if file.nil? || given?("RAILS_MASTER_KEY") || @folder.file?(key)

      warning("#{file} cannot be read: there is neither #{key} nor RAILS_MASTER_KEY",
              "Put the key into #{key}, or set RAILS_MASTER_KEY in the environment.")
    end

    def database
      return unless USES_DATABASE.match?(@folder.read("config/application.rb"))
      return database_url if given?("DATABASE_URL")
      return if @folder.file?("config/database.yml")

      warning("there is neither config/database.yml nor DATABASE_URL",
              "Write config/database.yml, or set DATABASE_URL, such as sqlite3:db/#{@environment}.sqlite3.")
    end

    def database_url
      scheme = @variables["DATABASE_URL"][/\A([a-z][a-z0-9+.-]*):/i, 1]
      return warning("DATABASE_URL is not a URL", "Write it as adapter://user:password@host/database.") unless scheme

      gems = ADAPTERS[scheme.downcase] or return
      return unless gems.all? { |gem| @folder.locked_without?(gem) }

      warning("DATABASE_URL is for #{scheme}, and Gemfile.lock has no #{gems.first}",
              "Add the gem and install it: bundle add #{gems.first}")
    end
  end
end
