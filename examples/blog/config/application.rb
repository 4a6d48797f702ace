# frozen_string_literal: true

require_relative "boot"

# Not "rails/all": that loads whichever asset pipeline happens to be installed, and the blog's
# stylesheet and script are plain files in public/.
require "logger"
require "rails"
require "active_model/railtie"
require "active_job/railtie"
require "active_record/railtie"
require "active_storage/engine"
require "action_controller/railtie"
require "action_view/railtie"
require "action_cable/engine"

# A small blog: posts with a file each, comments, and a page that echoes over Action Cable.
module Blog
  class Application < Rails::Application
    # "7.2.2.1".to_f is 7.2: the defaults of the Rails that is installed.
    config.load_defaults Rails::VERSION::STRING.to_f

    config.active_storage.service = :local
    # Uploads are kept unchanged: no image library is needed.
    config.active_storage.analyzers = []
    config.active_storage.previewers = []
  end

  # Creates the database and brings it up to date, so that the first start needs no other command.
  def self.prepare_database
    ActiveRecord::Tasks::DatabaseTasks.migrate
    # Forked processes must not share a connection to SQLite.
    ActiveRecord::Base.connection_pool.disconnect!
  end
end
