# frozen_string_literal: true

require_relative "boot"

# Not "rails/all": the shop needs no other parts, and its stylesheet is a plain file in public/.
require "logger"
require "rails"
require "active_model/railtie"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"
require "rails/test_unit/railtie" if Rails.env.test?

# A shop for model railways.
module Shop
  class Application < Rails::Application
    # "7.2.2.1".to_f is 7.2: the defaults of the Rails that is installed.
    config.load_defaults Rails::VERSION::STRING.to_f
    config.generators.system_tests = nil
  end

  # Creates the database, brings it up to date and fills an empty one, so that the first start needs no other command.
  def self.prepare_database
    ActiveRecord::Tasks::DatabaseTasks.migrate
    load Rails.root.join("db/seeds.rb") unless Product.exists?
    # Forked processes must not share a connection to SQLite.
    ActiveRecord::Base.connection_pool.disconnect!
  end
end
