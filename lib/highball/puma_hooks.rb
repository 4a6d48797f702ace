# frozen_string_literal: true

require_relative "hooks"
require_relative "exception_words"
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
        target = Log.readable("#{env['PATH_INFO']}?#{env['QUERY_STRING']}")
        texts = Native.masked(facts.values, App::FOLDER, target, [], Log.readable(env["rack.request.form_vars"]))
        Log.new.error("the application raised an exception", **facts.keys.zip(texts).to_h)
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

    module_function

    # Reads the file, and sets its hooks.
    def load(path, hooks = Highball.hooks)
      file = PumaFile.new.read(path)
      @wrapping = file.hooks.select { |hook| %i[lowlevel_error_handler rack_url_scheme].include?(hook.moment) }
      (file.hooks - @wrapping).each do |hook|
        hooks.add(hook.moment, ->(*arguments) { run(hook, *arguments) })
      end
    end

    # The application within what the file puts around it.
    def around(app)
      (@wrapping || []).reduce(app) do |inner, hook|
        hook.moment == :rack_url_scheme ? UrlScheme.new(inner, hook.block.call) : ErrorHandler.new(inner, hook.block)
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
