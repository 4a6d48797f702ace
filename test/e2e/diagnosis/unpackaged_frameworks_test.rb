# frozen_string_literal: true

require_relative "../../support/e2e_test"

# Frameworks that Debian does not package: applications as their generators make them, on fake gems that have only what
# booting such an application needs. (docs/detection.md lists the releases that were tried for real.)
class UnpackagedFrameworksTest < E2ETest
  RODA = {
    "roda.rb" => <<~RUBY
      class Roda
        RodaVersion = "3.0"
        class << self
          def route(&block) = @route = block
          def app = frozen? ? ->(env) { [200, {}, [@route.call(env)]] } : raise("not frozen")
        end
      end
    RUBY
  }.freeze

  # `hanami/boot` boots the application that config/app.rb defines, in the current folder.
  HANAMI = {
    "hanami.rb" => <<~RUBY,
      module Hanami
        VERSION = "2.0"
        class App
          def self.inherited(app) = Hanami.app = app
          def self.call(_env) = [200, {}, ["\#{name}, \#{@booted}"]]
          def self.boot = @booted = "booted"
        end
        class << self
          attr_accessor :app
        end
      end
    RUBY
    "hanami/boot.rb" => "require 'hanami'\nrequire File.expand_path('config/app')\nHanami.app.boot\n"
  }.freeze

  # A mounted application loads its file at the first request.
  PADRINO = {
    "padrino.rb" => <<~'RUBY'
      module Padrino
        VERSION = "0.15"
        Mounted = Struct.new(:name, :file, :path) { def to(path) = self.path = path }
        class Application
          def self.call(_env) = [200, {}, [name]]
        end
        class << self
          def root(path) = File.join(PADRINO_ROOT, path)
          def configure_apps = nil
          def mount(name, app_file:) = @mounted = Mounted.new(name, app_file)
          def load! = require(root("config/apps.rb"))
          def application = ->(env) { mounted.call(env) }

          def mounted
            require @mounted.file
            Object.const_get(@mounted.name)
          end
        end
      end
    RUBY
  }.freeze

  HANAMI_APP = { "config/app.rb" => "require \"hanami\"\n\nmodule Bookshelf\n  class App < Hanami::App\n  end\nend\n",
                 "config/routes.rb" => "module Bookshelf\n  class Routes < Hanami::Routes\n  end\nend\n" }.freeze

  PADRINO_APP = {
    "config/boot.rb" => <<~RUBY,
      PADRINO_ROOT = File.expand_path('../..', __FILE__) unless defined?(PADRINO_ROOT)
      require "padrino"
      Padrino.load!
    RUBY
    "config/apps.rb" => <<~RUBY,
      Padrino.configure_apps do
        enable :sessions
      end
      Padrino.mount("Blog::App", :app_file => Padrino.root('app/app.rb')).to('/')
    RUBY
    "app/app.rb" => "module Blog\n  class App < Padrino::Application\n  end\nend\n"
  }.freeze

  def test_roda
    file = "require \"roda\"\n\nclass App < Roda\n  route { |_r| \"from the route\" }\nend\n"
    assert_served "Roda 3.0", "from the route", RODA, "app.rb" => file
    assert_served "Roda 3.0", "from the route", RODA, "app.rb" => file,
                                                      "config.ru" => "require_relative \"app\"\nrun App.freeze.app\n"
  end

  def test_hanami
    assert_served "Hanami 2.0", "Bookshelf::App, booted", HANAMI, HANAMI_APP
    config = "require \"hanami/boot\"\n\nrun Hanami.app\n"
    assert_served "Hanami 2.0", "Bookshelf::App, booted", HANAMI, HANAMI_APP.merge("config.ru" => config)
  end

  def test_padrino
    assert_served "Padrino 0.15", "Blog::App", PADRINO, PADRINO_APP
    config = "require File.expand_path(\"../config/boot.rb\", __FILE__)\n\nrun Padrino.application\n"
    assert_served "Padrino 0.15", "Blog::App", PADRINO, PADRINO_APP.merge("config.ru" => config)
  end

  private

  # Highball detects the application as this framework, and serves this body, with these files as the gem.
  def assert_served(name, body, gem, app)
    server = serve(folder_with(app), env: { "RUBYLIB" => folder_with(gem) })
    assert_equal body, server.get("/").body
    assert_equal name, server.status["framework"]
    assert_match(/found app="#{name[/\w+/]} in production"/, server.log)
  end
end
