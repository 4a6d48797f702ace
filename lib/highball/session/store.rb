# frozen_string_literal: true

require_relative "folder"
require_relative "sweeper"

module Highball
  # Session stores in files, for Rack (PStore) and for Rails (ActionDispatch::Session::HighballStore).
  module Session
    # What the session stores for Rack and for Rails have in common: the methods that Rack::Session::Abstract::Persisted
    # calls.
    module Store
      # The options beside those of all session stores; docs/sessions.md says what they mean.
      DEFAULTS = {
        folder: "tmp/sessions", lifetime: 30 * 24 * 3600, most: 1_000_000, most_bytes: 1024**3,
        most_bytes_each: 64 * 1024, durable: false
      }.freeze
      LOADED = "highball.session"
      private_constant :LOADED

      # options:: those of Rack's session stores, and those of DEFAULTS
      def initialize(app, options = {})
        options = { same_site: :lax }.merge(options)
        own = DEFAULTS.to_h { |name, default| [name, options.delete(name) || default] }
        own[:lifetime] = options[:expire_after] if options[:expire_after] && own[:lifetime] == DEFAULTS[:lifetime]
        own[:lifetime] = own[:lifetime].to_f
        @folder = Folder.new(own.delete(:folder), **own)
        @sweeper = Sweeper.new(@folder, own[:lifetime])
        super(app, options)
      end

      # Ends all sessions whose time is over. A thread does that, too.
      def sweep = @sweeper.sweep

      # Called by Rack: the session of this id. An id that no session has is never taken from a client: it gets another.
      def find_session(request, id)
        loaded = id && @folder.read(id.private_id)
        request.set_header(LOADED, loaded)
        loaded ? [id, loaded.values] : [generate_sid, {}]
      end

      # Called by Rack: writes what the request has changed. Returns false if the session has ended meanwhile.
      def write_session(request, id, values, _options)
        loaded = request.get_header(LOADED)
        return id if loaded && @folder.update(id.private_id, loaded, values)
        return false if loaded || !@folder.create(id.private_id, values)

        @sweeper.session_made
        id
      end

      # Called by Rack: ends the session. Returns the id of the next one, unless the option `drop` is set.
      def delete_session(request, id, options)
        @folder.delete(id.private_id)
        request.set_header(LOADED, nil)
        generate_sid unless options[:drop]
      end

      private

      # A request that only looked whether something is in the session makes none.
      def commit_session?(request, session, options)
        super && !(request.get_header(LOADED).nil? && session.empty?)
      end

      # The cookie is `Secure` if the request came by HTTPS.
      def set_cookie(request, response, cookie)
        cookie = cookie.merge(secure: true) if request.ssl?
        super(request, response, cookie)
      end
    end
  end
end
