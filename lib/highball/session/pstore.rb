# frozen_string_literal: true

begin
  require "rack/session/abstract/id"
rescue LoadError => e
  raise e.class, "#{e.message}: sessions need the gem rack-session, or Rack 2"
end
require_relative "store"

module Highball
  module Session
    # Sessions in files, for Rack applications:
    #
    #     require "highball/session/pstore"
    #     use Highball::Session::PStore, folder: "tmp/sessions"
    #
    # Beside the options of Rack's session stores (`key`, `path`, `domain`, `expire_after`, …), there are those of
    # Store::DEFAULTS. The client has only the session's id, in a cookie that scripts cannot read (HttpOnly), that
    # other sites' forms do not send (SameSite=Lax), and that is `Secure` if the request came by HTTPS.
    # docs/sessions.md has more.
    class PStore < Rack::Session::Abstract::PersistedSecure
      prepend Store
    end
  end
end
