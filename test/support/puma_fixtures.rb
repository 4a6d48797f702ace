# frozen_string_literal: true

require "fileutils"

# The Puma configurations in test/puma, with what each needs around it.
module PumaFixtures
  FOLDER = File.expand_path("../puma", __dir__)
  NAMES = Dir[File.join(FOLDER, "*.rb")].map { |path| File.basename(path, ".rb") }.sort.freeze
  CONFIG_RU = "run ->(env) { [200, {}, [\"\#{env['rack.url_scheme']} \#{Process.pid}\"]] }\n"
  # Variables that a platform or a deployment sets.
  ENVIRONMENTS = {
    "rails70" => { "WEB_CONCURRENCY" => "2" },
    "rails71" => { "RAILS_ENV" => "production", "WEB_CONCURRENCY" => "2" },
    "rails72" => { "PIDFILE" => "tmp/pids/server.pid", "RAILS_MAX_THREADS" => "7" },
    "rails80" => { "SOLID_QUEUE_IN_PUMA" => "1" },
    "mastodon_like" => { "RAILS_ENV" => "production", "PROXY_PROTOCOL" => "true" },
    "discourse_like" => { "RAILS_ENV" => "production", "NUM_WEBS" => "2" },
    "heroku_guide" => { "PORT" => "5000", "RACK_ENV" => "production" },
    "heroku_old" => { "PORT" => "5000", "WEB_CONCURRENCY" => "1" },
    "kamal_like" => { "SOLID_QUEUE_IN_PUMA" => "1", "WEB_CONCURRENCY" => "2" },
    "sinatra_small" => { "FORCE_SSL" => "1" },
    "modern" => { "WEB_CONCURRENCY" => "1" }
  }.freeze
  # Files that they load.
  FILES = {
    "gitlab_like" => { "lifecycle.rb" => <<~RUBY },
      module Lifecycle
        class << self
          attr_accessor :threads

          def call(name) = warn("lifecycle \#{name} with \#{threads} threads")
        end
      end
    RUBY
    "kamal_like" => { "bin/jobs" => "sleep" },
    "rails80" => { "bin/jobs" => "sleep" },
    "own_names" => { "config/highball.rb" => <<~RUBY },
      class App
      end

      module Log
        def self.warn(text) = Kernel.warn(text)
      end
    RUBY
    "several_files" => { "config/puma/shared.rb" => "port 0\nworkers 2\nssl_bind '0.0.0.0', 9443\n" }
  }.freeze

  module_function

  # An application with this configuration: {file => content}.
  def app(name)
    { "config.ru" => CONFIG_RU, "config/puma.rb" => File.read(File.join(FOLDER, "#{name}.rb")),
      "tmp/pids/.keep" => "" }.merge(FILES.fetch(name, {}))
  end

  def environment(name) = ENVIRONMENTS.fetch(name, {})
end
