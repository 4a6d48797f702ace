# frozen_string_literal: true

require "digest"
require "fileutils"
require "pstore"
require "action_dispatch"
require "action_dispatch/middleware/session/abstract_store"

module Sessions
  # Sessions in files of Ruby's PStore, one each: what CGI::Session::PStore was, which Rails 1 had by default. To
  # compare with.
  class RubyPStore < ActionDispatch::Session::AbstractSecureStore
    def initialize(app, options = {})
      @folder = options.fetch(:folder)
      FileUtils.mkdir_p(@folder)
      super
    end

    def find_session(_request, id)
      values = id && read(path_of(id))
      values ? [id, values] : [generate_sid, {}]
    end

    def write_session(_request, id, values, _options)
      store = PStore.new(path_of(id))
      store.transaction { store[:values] = values }
      id
    end

    def delete_session(_request, id, options)
      FileUtils.rm_f(path_of(id))
      generate_sid unless options[:drop]
    end

    private

    def path_of(id) = File.join(@folder, Digest::SHA256.hexdigest(id.private_id))

    def read(path)
      store = PStore.new(path)
      store.transaction(true) { store.fetch(:values, nil) }
    end
  end
end
