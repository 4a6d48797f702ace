# frozen_string_literal: true

require "action_dispatch"
require "action_dispatch/middleware/session/abstract_store"
require "active_record"

module Sessions
  # Sessions in a table of SQLite, as the gem activerecord-session_store has them, which Debian does not package. To
  # compare with. As in Rails 7.1 and later, readers do not wait for a writer, and commits are not synced.
  class SqliteTable < ActionDispatch::Session::AbstractSecureStore
    # Makes the table.
    def self.create(path)
      connect(path)
      Row.connection.create_table :sessions do |t|
        t.string :session_id, null: false
        t.binary :data, null: false
        t.timestamps
      end
      Row.connection.add_index :sessions, :session_id, unique: true
      Row.connection.execute("PRAGMA journal_mode = WAL")
      Row.remove_connection
    end

    def self.connect(path)
      Row.establish_connection(adapter: "sqlite3", database: path, timeout: 5000,
                               pool: Integer(ENV.fetch("RAILS_MAX_THREADS", 5)))
    end

    # A session.
    class Row < ActiveRecord::Base
      self.table_name = "sessions"

      # (Debian 12's Rails syncs each commit.)
      def self.connection
        super.tap do |connection|
          next if connection.instance_variable_get(:@synced_less)

          connection.execute("PRAGMA synchronous = NORMAL")
          connection.instance_variable_set(:@synced_less, true)
        end
      end
    end

    def initialize(app, options = {})
      SqliteTable.connect(options.fetch(:database))
      super
    end

    def find_session(_request, id)
      data = id && Row.where(session_id: id.private_id).pick(:data)
      data ? [id, Marshal.load(data)] : [generate_sid, {}] # rubocop:disable Security/MarshalLoad
    end

    def write_session(_request, id, values, _options)
      now = Time.now
      Row.upsert({ session_id: id.private_id, data: Marshal.dump(values), created_at: now, updated_at: now },
                 unique_by: :session_id)
      id
    end

    def delete_session(_request, id, options)
      Row.where(session_id: id.private_id).delete_all
      generate_sid unless options[:drop]
    end
  end
end
