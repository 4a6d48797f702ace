# frozen_string_literal: true

require_relative "hooks"
require_relative "exception_words"
require_relative "request_secrets"
require_relative "puma_file"

module Highball
  # The hooks of a Puma configuration in the application's processes.
  module PumaHooks
    # Moments at which Puma's blocks are given the worker's index.
    NUMBERED = %i[after_fork before_worker_shutdown before_worker_fork after_worker_fork].freeze

    # Answers with the response of a `lowlevel_error_handler` where the application raises an exception.
    class ErrorHandler
      def initialize(app, handler)
        @app = app
        @handler = handler
      end

      def call(env)
        @app.call(env)
      rescue StandardError => e
        report(e, env)
        @handler.call(*[e, env, 500].first(taken))
      end

      private

      # As the server would, without secrets.
      def report(error, env)
        facts = ExceptionWords.new(error).facts.compact
        texts = RequestSecrets.masked(facts.values, env)
        Log.new.error(:exception_raised, **facts.keys.zip(texts).to_h)
      end

      # How many arguments it takes: Puma has come to give more of them.
      def taken
        callable = @handler.respond_to?(:arity) ? @handler : @handler.method(:call)
        callable.arity.negative? ? 3 : callable.arity
      end
    end

    # Sets `rack.url_scheme`.
    class UrlScheme
      def initialize(app, scheme)
        @app = app
        @scheme = scheme
      end

      def call(env)
        env["rack.url_scheme"] = @scheme
        @app.call(env)
      end
    end

    # Answers requests with other methods than these itself.
    class Methods
      def initialize(app, methods)
        @app = app
        @methods = methods
      end

      def call(env)
        return @app.call(env) if @methods.include?(env["REQUEST_METHOD"])

        [501, { "content-type" => "text/plain" }, ["#{env['REQUEST_METHOD']} method is not supported"]]
      end
    end

    # Sets `REMOTE_ADDR`: to an address, or to the first one in a header field.
    class RemoteAddress
      def initialize(app, from)
        @app = app
        @from = from
      end

      def call(env)
        address = @from.start_with?("HTTP_") ? env[@from].to_s[/[^\s,]+/] : @from
        env["REMOTE_ADDR"] = address if address
        @app.call(env)
      end
    end

    module_function

    # Reads the file, and sets its hooks.
    def load(path, hooks = Highball.hooks)
      file = PumaFile.new.read(path)
      @wrapping = file.hooks.select { |hook| PumaStatements::AROUND.include?(hook.moment) }
      (file.hooks - @wrapping).each do |hook|
        hooks.add(hook.moment, ->(*arguments) { run(hook, *arguments) })
      end
    end

    # The application within what the file puts around it.
    def around(app)
      (@wrapping || []).reduce(app) do |inner, hook|
        case hook.moment
        when :rack_url_scheme then UrlScheme.new(inner, hook.block.call)
        when :supported_http_methods then Methods.new(inner, hook.block.call)
        when :set_remote_address then RemoteAddress.new(inner, hook.block.call)
        else ErrorHandler.new(inner, hook.block)
        end
      end
    end

    # A hook that raises is reported, and does not keep the process from serving: as in Puma.
    def run(hook, number = nil)
      index = number - 1 if NUMBERED.include?(hook.moment)
      hook.data ? hook.block.call(index, hook.data) : hook.block.call(index)
    rescue StandardError => e
      warn "highball: #{hook.file}:#{hook.line}: #{hook.statement} raised #{ExceptionWords.summary(e)}\n" \
           "#{ExceptionWords.new(e).backtrace}"
    end
  end
end
