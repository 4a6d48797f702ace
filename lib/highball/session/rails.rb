# frozen_string_literal: true

require "action_dispatch"
require "action_dispatch/middleware/session/abstract_store"
require_relative "store"

module ActionDispatch # :nodoc:
  module Session # :nodoc:
    # Sessions in files, for Rails applications. In config/initializers/session_store.rb:
    #
    #     require "highball/session/rails"
    #     Rails.application.config.session_store :highball_store, key: "_blog_session", expire_after: 2.weeks
    #
    # The options are those of Highball::Session::PStore. The folder is `tmp/sessions` in the application's.
    class HighballStore < AbstractSecureStore
      prepend Highball::Session::Store

      # options:: those of Rails' session stores, and those of Highball::Session::PStore
      def self.new(app, options = {})
        root = Rails.root if defined?(::Rails.root)
        folder = File.expand_path(options[:folder] || Highball::Session::Store::DEFAULTS[:folder], root || Dir.pwd)
        super(app, options.merge(folder: folder))
      end
    end
  end
end
