# frozen_string_literal: true

require_relative "allocator"
require_relative "assets"
require_relative "boot_cache"
require_relative "boot_requires"
require_relative "collector"
require_relative "compiler"
require_relative "database_pools"
require_relative "detection"
require_relative "entity_tags"
require_relative "heap_layout"
require_relative "host_system"
require_relative "message"
require_relative "new_relic"
require_relative "public_names"
require_relative "rails_log"
require_relative "request_log"

module Highball
  # An application in its folder: loads it, and describes it to the supervisor.
  class App
    # The folder has no application.
    class NotFound < StandardError
    end

    # What was loaded cannot be called.
    class NotAnApp < StandardError
    end

    # The folder of this process's application. Read once, because processes outlive a release folder that is removed.
    FOLDER = Dir.pwd

    # The folder of Highball's Ruby code.
    LIB = File.expand_path("..", __dir__)

    # Where an application may set its hooks. Loaded before the application itself.
    SETTINGS = "config/highball.rb"

    attr_reader :rack_app

    # Sets up the gems of a Gemfile, if there is one.
    def self.set_up_gems(folder = Dir.pwd)
      return unless ENV["BUNDLE_GEMFILE"] || AppFolder.new(folder).gemfile

      require "bundler/setup"
      leave_out_other_version
    end

    # The Gemfile may have another version of Highball, for a server that has yet to take over. In one process, parts of
    # both would replace each other.
    def self.leave_out_other_version
      gem = Gem.loaded_specs["highball"] or return
      $LOAD_PATH.replace([LIB] | ($LOAD_PATH - gem.full_require_paths))
    end
    private_class_method :leave_out_other_version

    # The Detector that recognises the application in this AppFolder by its files.
    def self.find(folder)
      Detection.of(folder) or raise NotFound, Detection.not_found(folder)
    end

    # Loads the application in the way of its framework.
    def self.load(folder = Dir.pwd, found = find(AppFolder.new(folder)))
      shares_cable = ENV.delete("HIGHBALL_SHARES_CABLE") == "on" # for Highball alone
      puma = puma_file(folder)
      application = fast((folder if found.large?)) do
        settings = File.join(folder, SETTINGS)
        require settings if File.exist?(settings)
        PumaHooks.load(puma) if puma
        NewRelic.expect_forks { found.load }
      end
      app = new(puma ? PumaHooks.around(application) : application, folder, found)
      app.tap(&:show_log).tap(&:quicken_middleware).tap { |loaded| loaded.hold_cable(shared: shares_cable) }
    end

    # Calls the block, in which files are found and loaded faster.
    #
    # large:: the folder of a large application, for which it pays that another process compiles ahead.
    def self.fast(large, &) = BootCache.during(app: large) { BootRequires.during(&) }
    private_class_method :fast

    # The Puma configuration that stands in the place of one for Highball, if there is one in this release of the
    # application.
    def self.puma_file(folder)
      path = ENV.fetch("HIGHBALL_PUMA_FILE", nil) and path = File.expand_path(path, folder)
      return unless path && File.exist?(path)

      require_relative "puma_hooks"
      path
    end
    private_class_method :puma_file

    # found:: the detector that found it; nil for an application that was given as an object.
    def initialize(rack_app, folder = Dir.pwd, found = nil)
      raise NotAnApp, "#{rack_app.class} does not respond to `call`" unless rack_app.respond_to?(:call)

      require "rack"
      @rack_app = rack_app
      @folder = folder
      @found = found
    end

    # In development the application's log is where Highball's is: in the terminal.
    def show_log
      of_rails = rails? && RailsLog.show
      RequestLog.watch(of_rails) if ENV.fetch("RACK_ENV", "development") == "development"
    end

    # In production, stock middleware gives the same answers in less time.
    def quicken_middleware
      return unless ENV["RACK_ENV"] == "production"

      PublicNames.install if rails?
      EntityTags.install
    end

    # The front holds the WebSockets of Action Cable, if the application uses Highball's adapter.
    #
    # shared:: whether Highball's adapter replaces an adapter that reaches the clients of one worker alone
    def hold_cable(shared:)
      return unless defined?(::ActionCable) && HostSystem.linux?

      require_relative "cable"
      CableAdapter.share(@folder) if shared
      @rack_app = Cable.around(@rack_app)
    end

    # "Rails 6.1.7", or "Rack" where no framework is known.
    def framework = Detection.loaded_name(@found)

    # The folder of static files, or nil.
    def public_folder
      folder = rails? ? Rails.public_path.to_s : File.join(@folder, "public")
      return File.realpath(folder) if File.directory?(folder)

      folder if rails? # it may be created later, and assets are elsewhere
    end

    # The headers that the application configures for its static files.
    def public_headers
      headers = (Rails.application.config.public_file_server.headers if rails?) || {}
      headers.to_h { |name, value| [name.to_s, value.to_s] }
    end

    # What the front may serve of a Rails application's assets, or nil.
    def assets
      Assets.of(Rails.application) if rails?
    end

    # The application's fields in the messages to the supervisor.
    def description
      { pid: Process.pid, ruby: RUBY_VERSION, jit: Compiler.description, gc: Collector.description,
        allocator: Allocator.description, boot_cache: BootCache.description, rack: Rack.release, framework: framework,
        public: (folder = public_folder) && Message.path(folder), public_headers: public_headers, assets: assets }
    end

    # Lays out the heap so that forked processes share it for long.
    #
    # compact:: whether to compact the heap also where Ruby's warmup does not (before 3.3). A native extension that is
    #           not safe to compact then crashes this process.
    # reforked:: whether this process has served requests.
    def warm_up(compact: false, reforked: false)
      Compiler.free_unused_code
      HeapLayout.arrange(compact: compact, reforked: reforked, room: Collector.room)
    end

    # Closes Active Record's connections, which two processes must not share. Called before every fork, because the
    # application may have opened one since the last.
    def disconnect_databases = DatabasePools.all.each(&:disconnect!)

    private

    def rails?
      defined?(::Rails.application) && ::Rails.application
    end
  end
end
