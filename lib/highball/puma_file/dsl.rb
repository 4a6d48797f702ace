# frozen_string_literal: true

module Highball
  class PumaFile
    # What `self` is in a `config/puma.rb`: the statements are its methods. Those that do no more than the table of
    # PumaStatements says are made from it.
    class Dsl
      # What `@config` is for files that look into Puma's configuration.
      Config = Struct.new(:options)

      # Statements that say so are not carried out either: there is nothing to report.
      NOTHING = [false, nil, :any, :socket].freeze
      # Parameters of an address that Highball needs not.
      QUIET_PARAMETERS = %w[backlog low_latency].freeze

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

      def initialize(file)
        @file = file
        @options = file.options
        @config = Config.new(@options)
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

      PumaStatements::HOOKS.reject { |statement| %i[lowlevel_error_handler rack_url_scheme].include?(statement.target) }
                           .each do |statement|
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

      PumaStatements::NAMED.each do |statement|
        statement.names.each do |name|
          define_method(name) do |*arguments, **options, &_block|
            off = arguments.length == 1 && options.empty? && NOTHING.include?(arguments.first)
            off ? @file.skip(name) : @file.note(name, statement.here, statement.remedy)
          end
        end
      end

      def threads(minimum, maximum = minimum)
        counts = [minimum, maximum].flat_map { |count| count.to_s.split(":") }.map { |count| Integer(count) }
        raise ArgumentError, "the largest number of threads must be at least 1" if counts.max < 1

        @options.update(min_threads: counts.min, max_threads: counts.max)
        @file.set("threads", counts.max)
      end

      def workers(count)
        count = count.to_s == "auto" ? "auto" : Integer(count || 0)
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
        address, parameters = url.to_s.split("?", 2)
        return note_unusable(url, "addresses with TLS are not read", :ssl_bind) if address.start_with?("ssl://")
        return note_unusable(url, "abstract sockets are not bound", nil) if address.start_with?("unix://@")

        @file.bind(address)
        note_parameters(parameters.to_s.split("&"))
      end

      def clear_binds! = @file.forget_binds
      def set_default_host(host) = @default_host = host # rubocop:disable Naming/AccessorMethodName -- Puma's name
      def default_host = @default_host || "0.0.0.0"

      def load(file)
        @file.load_later(file)
      end

      def plugin(name)
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
        return @file.skip("directory") if @file.same_folder?(path.to_s)

        @file.note("directory", "The application is served from #{Dir.pwd}, and not from #{path}.",
                   "Name the folder on the command line: highball #{path}.")
      end
      alias worker_directory directory

      def lowlevel_error_handler(object = nil, &block)
        @file.hook("lowlevel_error_handler", :lowlevel_error_handler, object || block)
      end

      def rack_url_scheme(scheme = nil)
        @file.hook("rack_url_scheme", :rack_url_scheme, -> { scheme.to_s }) if scheme
      end

      def cluster(&block) = @file.run_later(block)
      def single = @file.skip("single")
      def inject(&) = instance_eval(&)
      def get(key, default = nil) = @options[key.to_sym] || default

      def method_missing(name, *_arguments, &)
        return super if @closed || name.start_with?("to_")

        @file.note(name.to_s, "This statement is not known.", remedy_for_unknown(name))
      end

      def respond_to_missing?(*) = false

      private

      def remember(name, value)
        @options[name.to_s.delete_suffix("!").to_sym] = value.nil? || value
      end

      # The option's text for the first argument of the statement, if there is one; nil: none.
      def option_text(form, *arguments)
        value = arguments.fetch(0, true)
        FORMS.fetch(form).call(value) unless value.nil? && !SWITCHES.include?(form)
      end

      def address(host, port) = "tcp://#{host.include?(':') && !host.start_with?('[') ? "[#{host}]" : host}:#{port}"

      def note_unusable(url, why, instead)
        remedy = instead ? PumaStatements.find(instead).remedy : "Give a path: bind \"unix:///run/app.sock\"."
        @file.note("bind", "#{url.to_s.split('?').first} is not bound: #{why}.", remedy)
      end

      def note_parameters(parameters)
        left = parameters.map { |parameter| parameter.split("=").first } - QUIET_PARAMETERS
        return if left.empty?

        verb = left.one? ? "has" : "have"
        @file.note("bind", "#{left.join(' and ')} of the address #{verb} no effect: the socket gets the permissions " \
                           "that the umask leaves.",
                   "Start the server with that umask (UMask= in the systemd unit).")
      end

      # Of a block that counts on small numbers, which are given again and again.
      def note_number(name, block)
        name_of_number = block.parameters.dig(0, 1)
        return if name_of_number.nil? || name_of_number.start_with?("_")

        @file.note(name, "The block is given the worker's number, from 0; no number is given twice.",
                   "Do not use it to choose one worker out of several.")
      end

      def remedy_for_unknown(name)
        known = PumaStatements::BY_NAME.keys
        guess = DidYouMean::SpellChecker.new(dictionary: known).correct(name.to_s).first if defined?(DidYouMean)
        return "Did you mean #{guess}?" if guess

        "Remove it, or look for its counterpart in docs/migrating/puma-statements.md."
      end
    end
  end
end
