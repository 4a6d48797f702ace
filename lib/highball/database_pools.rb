# frozen_string_literal: true

module Highball
  # Active Record's connection pools, of every database and role.
  module DatabasePools
    def self.all
      return [] unless defined?(::ActiveRecord::Base)

      handler = ::ActiveRecord::Base.connection_handler
      release = [::ActiveRecord::VERSION::MAJOR, ::ActiveRecord::VERSION::MINOR]
      every_role = (release <=> [7, 1]) >= 0
      every_role ? handler.connection_pool_list(:all) : handler.all_connection_pools
    end
  end
end
