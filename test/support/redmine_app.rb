# frozen_string_literal: true

require "fileutils"
require "uri"
require "yaml"
require_relative "question"
require_relative "versioned_app"

# Redmine from Debian's packages, with a separate database, served from a temporary folder. Every answer has the
# folder's version.
class RedmineApp
  INSTALLED = "/usr/share/redmine"
  INSTANCE = "/etc/redmine/default" # made when the package is installed

  CONFIG = <<~RUBY.freeze
    VERSION = File.read(File.join(__dir__, "version"))
    require "#{INSTALLED}/config/environment"
    redmine = Rails.application
    run lambda { |env|
      status, fields, body = redmine.call(env)
      [status, fields.merge("x-version" => VERSION), body]
    }
  RUBY

  # Parts that differ from one answer to the next, whatever the server.
  TOKEN = /((?:csrf-token" content="|authenticity_token" value="|name="form-))[^"]*/

  # Whether the instance can be copied, too: only root and the web server may read its key.
  def self.installed? = %w[database.yml secret_key.txt].all? { |name| File.readable?("#{INSTANCE}/#{name}") }

  # Copies the installed instance into this folder: the environment in which Redmine uses the copy. The package looks
  # for its instances below /usr/share/redmine/instances, a symbolic link to /var/lib/redmine: enough steps up for both
  # paths lead to the root.
  def self.copy_instance(folder)
    %w[config files log tmp/cache tmp/pdf tmp/thumbnails public].each { |name| FileUtils.mkdir_p("#{folder}/#{name}") }
    FileUtils.cp("#{INSTANCE}/secret_key.txt", "#{folder}/config/secret_key.txt")
    database = YAML.load_file("#{INSTANCE}/database.yml").fetch("production")
    copy_database(database.fetch("database"), "#{folder}/redmine.sqlite3")
    database["database"] = "#{folder}/redmine.sqlite3"
    File.write("#{folder}/config/database.yml", YAML.dump("production" => database))
    { "X_DEBIAN_SITEID" => File.join([".."] * 8, folder) }
  end

  # With the write-ahead log, which may still hold all of the data (Rails 7.1 and later).
  def self.copy_database(from, to)
    ["", "-wal"].each { |suffix| FileUtils.cp(from + suffix, to + suffix) if File.exist?(from + suffix) }
  end
  private_class_method :copy_database

  attr_reader :folder, :version, :env

  # In this folder, which is there and empty.
  def initialize(folder)
    @folder = File.join(folder, "served")
    FileUtils.mkdir(@folder)
    @env = self.class.copy_instance(File.join(folder, "instance")).merge("BUNDLE_GEMFILE" => "#{INSTALLED}/Gemfile")
    release
  end

  def ready = "/login"

  # Replaces this version by the next one: the same Redmine.
  def release
    @version = @version.to_i + 1
    VersionedApp.write(folder, @version, CONFIG)
  end

  # The requests of clients: pages that are the same each time, and a login with a wrong password, in a session.
  def questions(server)
    robots = server.get("/robots.txt").body
    headers, form = session(server)
    attempts = [[form, false], ["#{form}&back_url=#{'x' * 20_000}", true]].map do |body, chunked|
      fixed("POST", "/login", server, headers: headers, body: body, chunked: chunked)
    end
    [
      Question.new("GET", "/robots.txt") { |answer| [robots, answer.body] },
      fixed("GET", "/login", server, headers: headers),
      Question.new("HEAD", "/robots.txt") { |answer| ["", answer.body] },
      *attempts
    ]
  end

  private

  # A question whose answer always equals the first one.
  def fixed(method, target, server, **options)
    answer = server.connect { |connection| Question.new(method, target, **options).ask(connection, within: 60) }
    first = plain(answer.body)
    Question.new(method, target, **options) { |later| [first, plain(later.body)] }
  end

  # A cookie, and the form that goes with it.
  def session(server)
    answer = server.get("/login")
    cookie = answer["set-cookie"][/\A[^;]+/]
    token = answer.body[/authenticity_token" value="([^"]+)/, 1]
    form = URI.encode_www_form(authenticity_token: token, username: "nobody", password: "wrong")
    [{ "Cookie" => cookie, "Content-Type" => "application/x-www-form-urlencoded" }, form]
  end

  def plain(page) = page.gsub(TOKEN, "\\1")
end
