# frozen_string_literal: true

require_relative "app"
require_relative "exception_words"
require_relative "log"

module Highball
  # Texts about a request for the log, without its secrets and those of the application. Never raises: what the
  # application has left in the env may be anything.
  module RequestSecrets
    module_function

    # The texts, masked. Where that fails, only the reason: what was not masked may hold a secret.
    def masked(texts, env)
      Native.masked(texts.map { |text| Log.readable(text) }, App::FOLDER, *of(env))
    rescue StandardError, SystemStackError, NoMemoryError => e
      texts.map { "(cannot be shown: Highball could not look for secrets: #{ExceptionWords.summary(e)})" }
    end

    # "GET /path"
    def line(env)
      "#{readable(env['REQUEST_METHOD'])} #{Native.path_without_tokens(readable(env['PATH_INFO']))}"
    end

    # The parts of a request that may hold secrets: path and query, header fields, and the form if the application has
    # read it.
    def of(env)
      texts = env.select { |key, value| key.is_a?(String) && key.start_with?("HTTP_") && value.is_a?(String) }
      fields = texts.map { |key, value| [readable(key.delete_prefix("HTTP_").tr("_", "-")), readable(value)] }
      target = "#{readable(env['PATH_INFO'])}?#{readable(env['QUERY_STRING'])}"
      [target, fields, readable(env["rack.request.form_vars"])]
    end

    def readable(value)
      Log.readable(value)
    rescue StandardError, SystemStackError # its own `to_s` raises
      ""
    end
    private_class_method :of, :readable
  end
end
