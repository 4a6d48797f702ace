# frozen_string_literal: true

require_relative "cable_adapter"
require_relative "exception_words"
require_relative "text"

module Highball
  # Looks for problems in a loaded application: always for what its forked workers do not inherit or must not share, and
  # for what fails in the first request; for more if `highball doctor` examines it.
  class Checkup
    # A problem: see `Finding` in the supervisor's messages.
    Finding = Struct.new(:cause, :what, :file, :line, :remedy, :command, keyword_init: true)

    MOST = 20
    DEVELOPMENT_GEMS = %w[web-console byebug pry listen spring better_errors bullet rack-mini-profiler].freeze

    # Job runners that an application has (its gem, and a file that is there, too), and what starts each.
    JOB_RUNNERS = [
      ["Solid Queue", "solid_queue", "bin/jobs", 'jobs="bin/jobs"'],
      ["Sidekiq", "sidekiq", nil, 'sidekiq="bundle exec sidekiq"']
    ].freeze

    # `examine`: the number of serving threads, as text, for `highball doctor`; else nil.
    def initialize(root: Dir.pwd, examine: nil)
      @root = root
      @threads = examine&.to_i
      @production = ENV["RACK_ENV"] == "production"
    end

    # All problems, as the control protocol describes them.
    def findings
      found = threads + connections + [secret_key, replaced_adapter, relayed_cable].compact
      found += more if @threads
      found.first(MOST).map(&:to_h)
    rescue StandardError => e # a check that fails is no reason not to serve
      [Finding.new(cause: :checkup, what: "Highball could not look for problems: #{ExceptionWords.summary(e)}").to_h]
    end

    # What Highball could do for it: job runners that it could start. In development, Procfile.dev usually does.
    # `highball` leaves this out where a process is named.
    def offers
      return [] unless @production || @threads

      JOB_RUNNERS.filter_map do |name, gem, file, process|
        next unless Gem.loaded_specs.key?(gem) && (file.nil? || File.file?(File.join(@root, file)))

        Finding.new(cause: :jobs_elsewhere, what: "#{name} is in the bundle, and Highball does not start it",
                    remedy: "If nothing else does, have Highball run it beside the workers, and restart it with them.",
                    command: "highball --with #{process}").to_h
      end
    end

    private

    # A fork copies no other thread. Only threads that the application's own files start are reported.
    def threads
      (Thread.list - [Thread.main]).filter_map do |thread|
        file, line = Text.of(thread.inspect).match(/ (\S+):(\d+) \w+>?\z/)&.captures
        next unless file&.start_with?("#{Text.of(@root)}/")

        Finding.new(cause: :thread_at_boot, file: file, line: line.to_i,
                    what: "a thread was started while the application was loaded; it does not run in workers",
                    remedy: "Start it in each worker: Highball.after_fork { … } in config/highball.rb.")
      end
    end

    # Processes that share a connection read each other's answers.
    def connections
      return [] unless defined?(::BasicSocket)

      ObjectSpace.each_object(::BasicSocket).filter_map do |socket|
        next if socket.closed? || !(address = peer(socket))

        Finding.new(cause: :connection_at_boot,
                    what: "a connection to #{address} was opened while the application was loaded; all workers would " \
                          "share it",
                    remedy: "Close it before the fork, and open one in each worker: Highball.before_fork { … } and " \
                            "Highball.after_fork { … } in config/highball.rb.")
      end
    end

    # The other end of a connection to another program; nil for a socket pair within this process.
    def peer(socket)
      address = socket.remote_address
      return address.inspect_sockaddr if address.ip?

      address.unix_path unless address.unix_path.empty?
    rescue SystemCallError, SocketError
      nil # it is listening, or was closed
    end

    # Rails asks for it in the first request that has a session, and only in production: elsewhere it makes one up.
    # Applications keep it in many places.
    def secret_key
      return if !@production || !rails || !rails.secret_key_base.to_s.empty?

      no_secret_key
    rescue ArgumentError
      no_secret_key
    rescue StandardError
      nil # credentials that cannot be read have their own warning
    end

    def no_secret_key
      Finding.new(cause: :missing_secret_key_base,
                  what: "the application has no secret_key_base: requests with a session or a signed cookie will fail",
                  remedy: "Set SECRET_KEY_BASE in the environment, and keep it, or add it to the credentials.",
                  command: "export SECRET_KEY_BASE=$(openssl rand -hex 64)")
    end

    # Where Highball's adapter is in the place of the application's.
    def replaced_adapter
      return unless (adapter = CableAdapter.replaced)

      Finding.new(cause: :cable_adapter,
                  what: "Action Cable has the adapter #{adapter}, which reaches the clients of one worker alone: " \
                        "Highball's adapter takes its place",
                  remedy: "Name it in config/cable.yml (adapter: highball), so that consoles and scripts reach " \
                          "clients, too. Or keep #{adapter}: cable = off.",
                  **place_of_adapter)
    end

    # Where Action Cable's WebSockets could be held (Highball::Cable), but for something in the application.
    def relayed_cable
      return unless defined?(Cable) && Cable.server && (problem = Cable.problem)

      Finding.new(cause: :relayed_cable,
                  what: "Action Cable's WebSockets are given to workers, and close when these restart: #{problem}",
                  remedy: "Change that, or keep it: see \"What can't be held\" in docs/action-cable.md.")
    rescue StandardError
      nil # a connection class that cannot be loaded fails where it is used
    end

    def more
      [eager_load, concurrency, pool, cable, bus, sessions, sendfile_header, development_gems, assets].compact
    end

    def rails = defined?(::Rails.application) && ::Rails.application

    def eager_load
      return if !@production || !rails || rails.config.eager_load

      Finding.new(cause: :eager_load,
                  what: "eager_load is off in production: each worker loads the code during its first requests",
                  remedy: "Set config.eager_load = true.",
                  **place(/eager_load/, "config/environments/production.rb", "config/application.rb"))
    end

    def concurrency
      return unless rails && (rails.config.allow_concurrency == false || rails.middleware.include?(::Rack::Lock))

      Finding.new(cause: :one_at_a_time,
                  what: "a lock admits one request at a time: a worker's other threads wait",
                  remedy: "Remove config.allow_concurrency = false, or serve with --threads 1 and more workers.",
                  **place(/allow_concurrency|Rack::Lock/, "config/application.rb",
                          "config/environments/#{ENV.fetch('RAILS_ENV', nil)}.rb"))
    end

    def pool
      return unless defined?(::ActiveRecord::Base)

      size = ::ActiveRecord::Base.connection_pool.size
      return if size >= @threads

      Finding.new(cause: :small_pool, what: "the pool has #{size} database connections for #{@threads} threads: " \
                                            "threads would wait for a connection",
                  remedy: "Set the pool size to the number of threads: pool: #{@threads}.",
                  **place(/pool/, "config/database.yml"))
    rescue ::ActiveRecord::ActiveRecordError
      nil # it uses no database
    end

    # Adapters within a process: `highball doctor` leaves this out where there is one worker.
    def cable
      return unless rails && defined?(::ActionCable) && ::ActionCable.respond_to?(:server)
      return unless CableAdapter.channels?(@root)

      adapter = CableAdapter.name_of(::ActionCable.server)
      return unless CableAdapter::OF_ONE_PROCESS.include?(adapter)

      Finding.new(cause: :cable_adapter,
                  what: "Action Cable has the adapter #{adapter}: what one worker broadcasts reaches the clients of " \
                        "that worker alone",
                  remedy: "Name an adapter that workers share in config/cable.yml: highball, or with several " \
                          "machines redis, solid_cable or postgresql. Or serve with --workers 1 and more threads.",
                  **place_of_adapter)
    end

    # The Redis between machines.
    def bus
      defined?(Cable) && Cable.bus&.check
      nil
    rescue StandardError => e
      Finding.new(cause: :cable_bus, what: "the Redis between machines does not answer: broadcasts fail (#{e.message})",
                  remedy: "Start it, or correct its address in config/cable.yml.", **place_of_adapter)
    end

    def place_of_adapter
      rails ? place_below(/\A#{Regexp.escape(::Rails.env)}:/, /adapter:/, "config/cable.yml") : {}
    end

    # `highball doctor` leaves this out where nothing says that there are several machines.
    def sessions
      return unless defined?(Highball::Session::Folder)

      folder = ::ObjectSpace.each_object(Highball::Session::Folder).first or return
      Finding.new(cause: :local_sessions,
                  what: "sessions are files in #{folder.path}: with several machines, a user is logged in on one of " \
                        "them alone",
                  remedy: "Keep sessions in the cookie, or in a store that all machines reach: Redis, or Solid Cache.",
                  **place(/session_store|Session::PStore/, "config/initializers/session_store.rb",
                          "config/application.rb", "config/environments/#{ENV.fetch('RAILS_ENV', nil)}.rb",
                          "config.ru", "app.rb"))
    end

    # `highball doctor` leaves this out where Highball sends such files, or a proxy may.
    def sendfile_header
      return unless rails && rails.config.action_dispatch.x_sendfile_header.to_s.casecmp?("x-sendfile")

      Finding.new(cause: :sendfile_header,
                  what: "Rails names files in the header X-Sendfile, for a web server; without one, clients get " \
                        "empty files",
                  remedy: "Remove config.action_dispatch.x_sendfile_header, or name the folders of the files in the " \
                          "option sendfile.",
                  **place(/x_sendfile_header/, "config/environments/#{ENV.fetch('RAILS_ENV', nil)}.rb",
                          "config/application.rb"))
    end

    def development_gems
      return unless @production

      loaded = (Gem.loaded_specs.keys & DEVELOPMENT_GEMS).select { |gem| required?(gem) }
      return if loaded.empty?

      Finding.new(cause: :development_gems, what: "gems for development are loaded in production: #{loaded.join(', ')}",
                  remedy: "Put them into `group :development` of the Gemfile.", **place(/#{loaded.first}/, "Gemfile"))
    end

    # Bundler activates the gems of all groups; it requires those of some. `web-console` is required as `web_console` or
    # `web/console`, and the application's own file of that name is something else.
    def required?(gem)
      files = [gem, gem.tr("-", "_"), gem.tr("-", "/")].uniq.map { |name| "/#{name}.rb" }
      own = %w[app lib config].map { |folder| "#{@root}/#{folder}/" }
      $LOADED_FEATURES.any? { |path| path.end_with?(*files) && !path.start_with?(*own) }
    end

    def assets
      return if !@production || !rails || !rails.config.respond_to?(:assets) || rails.config.assets.compile
      return if Dir.exist?(File.join(@root, "public/assets")) || Dir.empty?(File.join(@root, "app/assets"))

      Finding.new(cause: :missing_assets,
                  what: "there is no public/assets: pages would have no styles and no scripts",
                  remedy: "Build the assets.", command: "RAILS_ENV=production bin/rails assets:precompile")
    rescue SystemCallError
      nil # there are no assets
    end

    # The first matching line, in the first of these files that has one.
    def place(pattern, *names)
      names.each do |name|
        path = File.join(@root, name)
        index = Text.lines(path).index { |line| pattern.match?(line) && !line.lstrip.start_with?("#") }
        return { file: path, line: index + 1 } if index
      end
      {}
    end

    # The first line that matches below a line that matches `section`: in a file of YAML.
    def place_below(section, pattern, name)
      path = File.join(@root, name)
      lines = Text.lines(path)
      first = lines.index { |line| section.match?(line) } or return {}
      index = (first...lines.length).find { |number| pattern.match?(lines[number]) } or return {}

      { file: path, line: index + 1 }
    end
  end
end
