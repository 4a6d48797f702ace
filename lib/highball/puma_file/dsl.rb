# frozen_string_literal: true

module Highball
  class PumaFile
    # What `@config` is for files that look into Puma's configuration.
    Config = Struct.new(:options) do
      alias_method :_options, :options
    end

    # Statements that say so are not carried out either: there is nothing to report.
    NOTHING = [false, nil, :any, :socket].freeze
    # Parameters of an address that Highball needs not.
    QUIET_PARAMETERS = %w[backlog low_latency].freeze
    UMASK = "Start the server with that umask (UMask= in the systemd unit)."
    # Who may write to a Unix socket may connect to it.
    MAY_CONNECT = 0o222

    # How the option's text is made of the argument; nil: there is none. Without an argument that is true.
    FORMS = {
      text: ->(value) { value.to_s unless value.to_s.empty? },
      switch: ->(value) { value ? "on" : "off" },
      access_log: ->(value) { value ? "-" : "none" },
      no_access_log: ->(value) { value ? "none" : "-" },
      refork: lambda do |value|
        requests = value == true ? 1000 : Integer(value)
        requests.zero? ? "off" : requests
      end,
      integer: ->(value) { Integer(value) },
      seconds: ->(value) { seconds(Float(value)) },
      shutdown: lambda do |value|
        next if [:forever, true].include?(value)

        value == :immediately ? "0s" : seconds(Float(value))
      end
    }.freeze
    # Those for which nothing is a value.
    SWITCHES = %i[switch access_log no_access_log].freeze

    # None is not a time that Highball could wait: the shortest is.
    def self.seconds(value)
      return "1ms" unless value.positive?

      value == value.to_i ? "#{value.to_i}s" : "#{value.round(3)}s"
    end

    # What `self` is in a `config/puma.rb`: the statements are its methods. The table of PumaStatements
    # makes the simple ones. A file finds the constants of this class by their bare names, so it has only the constants
    # that a file finds with Puma.
    class Dsl
      Puma = PumaModule
      # rubocop:disable Naming/ConstantName -- Puma's names
      DefaultRackup = "config.ru"
      DefaultTCPHost = "0.0.0.0"
      DefaultTCPPort = 9292
      DefaultWorkerCheckInterval = 5
      DefaultWorkerTimeout = 60
      DefaultWorkerShutdownTimeout = 30
      # rubocop:enable Naming/ConstantName

      # For a constant that neither the application nor Ruby has.
      def self.const_missing(name)
        return PumaModule.const_get(name) if PumaModule.const_defined?(name, false)

        remedy = Surroundings.remedy_for(name) or return Object.const_missing(name)
        raise NameError.new("uninitialized constant #{name}: #{remedy}", name)
      end

      def initialize(file)
        @file = file
        @options = file.options
        @config = PumaFile.config = Config.new(@options)
        @closed = false
      end

      # From now on an unknown name is an error again: what runs now are hooks.
      def close = @closed = true

      PumaStatements::OPTIONS.reject { |statement| statement.as == :special }.each do |statement|
        statement.names.each do |name|
          define_method(name) do |*arguments|
            value = option_text(statement.as, *arguments)
            remember(name, arguments.first)
            value ? @file.set(statement.target.first, value) : @file.skip(name)
          end
        end
      end

      PumaStatements::HOOKS.reject { |statement| PumaStatements::AROUND.include?(statement.target) }.each do |statement|
        statement.names.each do |name|
          define_method(name) do |key = nil, &block|
            @file.hook(name, statement.target, block, key)
            note_number(name, block) if statement.target == :after_fork
          end
        end
      end

      PumaStatements::BUILT_IN.flat_map(&:names).each do |name|
        define_method(name) do |*arguments, **_options, &_block|
          remember(name, arguments.first)
          @file.skip(name)
        end
      end

      PumaStatements::NAMED.reject { |statement| statement.target == :special }.each do |statement|
        statement.names.each do |name|
          define_method(name) do |*arguments, **options, &_block|
            off = arguments.length == 1 && options.empty? && NOTHING.include?(arguments.first)
            off ? @file.skip(name) : @file.note(name, statement.here, statement.remedy, narrows: statement.narrows)
          end
        end
      end

      def threads(minimum, maximum = minimum)
        counts = [minimum, maximum].flat_map { |count| count.to_s.split(":") }.map { |count| Integer(count) }
        raise ArgumentError, "the largest number of threads must be at least 1" if counts.max < 1

        @options.update(min_threads: counts.min, max_threads: counts.max)
        set_threads
      end

      # Beyond the others, for requests that wait.
      def max_io_threads(count)
        @options[:max_io_threads] = Integer(count)
        set_threads
      end

      def workers(count)
        count = 0 if count.to_s.empty?
        count = count.to_s == "auto" ? "auto" : Integer(count)
        @options[:workers] = count
        @file.set("workers", count)
      end

      def port(port, host = nil)
        host ||= @default_host
        port = Integer(port)
        (@options[:binds] ||= []) << "tcp://#{host || '0.0.0.0'}:#{port}"
        @file.bind(host && address(host, port), by_port: port)
      end

      def bind(url)
        (@options[:binds] ||= []) << url
        address, _, query = url.to_s.partition("?")
        parameters = TlsAddress.parameters(query)
        return tls("bind", address.delete_prefix("ssl://"), parameters) if address.start_with?("ssl://")

        why, remedy = unusable(address, parameters)
        return @file.note("bind", "#{address} is not bound: #{why}.", remedy, narrows: "bind") if why

        @file.bind(address)
        note_parameters(address, parameters)
      end

      def ssl_bind(host, port, parameters = {})
        (@options[:binds] ||= []) << "ssl://#{host}:#{port}"
        tls("ssl_bind", address(host.to_s, port).delete_prefix("tcp://"), parameters)
      end

      # With `'only'`, Puma binds systemd's sockets alone, if there are some.
      def bind_to_activated_sockets(bind = true) # rubocop:disable Style/OptionalBooleanParameter -- as Puma has it
        statement = PumaStatements.find("bind_to_activated_sockets")
        return @file.skip(statement.names.first) unless bind

        narrows = bind.to_s == "only" && ENV.key?("LISTEN_FDS") ? "activated sockets" : "bind"
        @file.note(statement.names.first, statement.here, statement.remedy, narrows: narrows)
      end

      def clear_binds! = @file.forget_binds

      def set_default_host(host) # rubocop:disable Naming/AccessorMethodName -- Puma's name
        @default_host = host
        @file.use_host(host)
      end

      def default_host = @default_host || "0.0.0.0"

      def load(file)
        @file.load_later(file)
      end

      def _load_from(path) = path && @file.carry_out(path)
      def _offer_plugins = nil

      def plugin(name)
        return @file.run_jobs if name.to_s == PumaStatements::JOBS

        remedy = PumaStatements::PLUGINS.fetch(name.to_s, PumaStatements::OTHER_PLUGIN)
        return @file.skip("plugin :#{name}") unless remedy

        @file.note("plugin :#{name}", "The plugin does not run.", remedy)
      end

      def rackup(path)
        @options[:rackup] = path.to_s
        @file.start_from(path.to_s)
      end

      def directory(path)
        @options[:directory] = path.to_s
        @file.skip("directory") if @file.same_folder?(path.to_s)
        @file.live_in(path.to_s)
      end
      alias worker_directory directory

      def lowlevel_error_handler(object = nil, &block)
        @file.hook("lowlevel_error_handler", :lowlevel_error_handler, object || block)
      end

      def rack_url_scheme(scheme = nil)
        @file.hook("rack_url_scheme", :rack_url_scheme, -> { scheme.to_s }) if scheme
      end

      def supported_http_methods(methods)
        return @file.skip("supported_http_methods") if methods.to_s == "any"

        methods = Array(methods).map(&:to_s)
        @file.hook("supported_http_methods", :supported_http_methods, -> { methods })
      end

      def set_remote_address(value = :socket)
        case value
        when :socket then @file.skip("set_remote_address")
        when :localhost then @file.hook("set_remote_address", :set_remote_address, -> { "127.0.0.1" })
        when String then @file.hook("set_remote_address", :set_remote_address, -> { value })
        when Hash then remote_address_by(value)
        else raise ArgumentError, "set_remote_address takes no #{value.inspect}"
        end
      end

      def cluster(&block) = @file.run_later(block)
      def single = @file.skip("single")
      def inject(&) = instance_eval(&)
      def get(key, default = nil) = @options[key.to_sym] || default

      def method_missing(name, *_arguments, &)
        return super if @closed || name.start_with?("to_")

        @file.note(name.to_s, "This statement is not known.", remedy_for_unknown(name),
                   narrows: (name.to_s if PumaStatements.may_narrow?(name)))
      end

      def respond_to_missing?(*) = false

      private

      # `threads` and `max_io_threads` together. Without `threads`, Puma has up to 5. With fewer than 3 at the
      # beginning, short requests would wait for long computations, as these get no more threads.
      def set_threads
        puma_most = @options[:max_threads] || 5
        least = (@options[:min_threads] || 0).clamp([3, puma_most].min, puma_most)
        most = puma_most + @options.fetch(:max_io_threads, 0)
        @file.set("threads", least == most ? most : "#{least}..#{most}")
      end

      def remember(name, value)
        @options[name.to_s.delete_suffix("!").to_sym] = value.nil? || value
      end

      # The option's text for the first argument of the statement, if there is one; nil: none.
      def option_text(form, *arguments)
        value = arguments.fetch(0, true)
        FORMS.fetch(form).call(value) unless value.nil? && !SWITCHES.include?(form)
      end

      def address(host, port) = "tcp://#{host.include?(':') && !host.start_with?('[') ? "[#{host}]" : host}:#{port}"

      def tls(statement, address, parameters)
        found = TlsAddress.new(address, parameters, Dir.pwd)
        why, remedy = found.problem
        return @file.bind_tls(statement, found) unless why

        @file.note(statement, "ssl://#{address} is not bound: #{why}.", "#{remedy[0].upcase}#{remedy[1..]}.",
                   narrows: "bind")
      end

      # Why this address cannot be bound as it says, and what to do; nil: it can.
      def unusable(address, parameters)
        named = (parameters.keys & TlsAddress::NAMES).first
        return ["`#{named}` is for addresses with TLS", "Write ssl:// in the place of tcp://."] if named
        return unless address.start_with?("unix://")
        return ["abstract sockets are not bound", "Give a path: bind \"unix:///run/app.sock\"."] if address[7] == "@"

        ["more users could connect to the socket than its parameters say", UMASK] if wider?(parameters)
      end

      # Whether the umask lets users connect whom the parameters of a Unix socket keep out.
      def wider?(parameters)
        mode = parameters["mode"]&.oct || (0o777 & ~parameters.fetch("umask", "0").oct)
        ((0o777 & ~File.umask) & ~mode & MAY_CONNECT).positive?
      end

      def note_parameters(address, parameters)
        left = parameters.keys - QUIET_PARAMETERS
        return if left.empty?

        what = "#{left.join(' and ')} of the address #{left.one? ? 'has' : 'have'} no effect"
        return @file.note("bind", "#{what}.", "Remove it.") unless address.start_with?("unix://")

        @file.note("bind", "#{what}: the socket gets the permissions that the umask leaves.", UMASK)
      end

      # Of a block that counts on small numbers, which are given again and again.
      def note_number(name, block)
        name_of_number = block.parameters.dig(0, 1)
        return if name_of_number.nil? || name_of_number.start_with?("_")

        @file.note(name, "The block is given the worker's number, from 0; no number is given twice.",
                   "Do not use it to choose one worker out of several.")
      end

      def remote_address_by(options)
        if (header = options[:header])
          key = "HTTP_#{header.to_s.upcase.tr('-', '_')}"
          @file.hook("set_remote_address", :set_remote_address, -> { key })
        elsif options[:proxy_protocol].to_s == "v1"
          @file.set("proxy_protocol", "v1")
        else
          raise ArgumentError, "set_remote_address takes no #{options.inspect}"
        end
      end

      def remedy_for_unknown(name)
        known = PumaStatements::BY_NAME.keys.reject { |statement| statement.start_with?("_") }
        guess = Spelling.near(name.to_s, known)
        return "Did you mean #{guess}?" if guess

        "Remove it, or look for its counterpart in docs/migrating/puma-statements.md."
      end
    end
  end
end
