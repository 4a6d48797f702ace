# frozen_string_literal: true

require "minitest/autorun"
require "action_controller"
require "action_dispatch"
require "fileutils"
require "tmpdir"
require "highball/public_names"
require_relative "../support/run_ruby"

# Rails' middleware for static files, with and without the names: the same answer to every request.
class PublicNamesTest < Minitest::Test
  include RunRuby

  APP = ->(env) { [200, { "x-app" => "yes" }, ["app: #{env['PATH_INFO']}"]] }
  Passing = Class.new(ActionDispatch::Static) { prepend Highball::PublicNames::Passing }
  FILES = ["index.html", "404.html", "robots.txt", "favicon.ico", "page.html", "page/index.html", "posts.html.gz",
           "only.css.gz", "data.json.br", "assets/a.js", "assets/a.js.gz", ".hidden", ".well-known/x", "a b.txt",
           "ä.txt", "dots.in.name.html", "up/x", "UPPER.txt"].freeze
  PATHS = ["/", "", "//", "/index", "/index.html", "/404", "/robots.txt", "/robots", "/robots.txt/", "/page", "/page/",
           "/page/index", "/page.html", "/posts", "/posts/1", "/posts.html", "/only.css", "/only", "/data.json",
           "/assets/a.js", "/assets/../robots.txt", "/x/../robots.txt", "/%72obots.txt", "/x/%2e%2e/robots.txt",
           "/.hidden", "/.well-known/x", "/a%20b.txt", "/a b.txt", "/%C3%A4.txt", "/ä.txt", "/ä.txt".b, "/dots.in.name",
           "/dots", "/dots.in", "/up", "/up/x", "/upper.txt", "/UPPER.txt", "/stations/7", "/stations/7.json", "/é",
           "robots.txt", "/\\robots.txt", "/x\0", "/./robots.txt", "/stations//robots.txt", "/%", "*"].freeze

  def setup
    @root = Dir.mktmpdir
    FILES.each do |file|
      FileUtils.mkdir_p(File.dirname("#{@root}/#{file}"))
      File.write("#{@root}/#{file}", "content of #{file}")
    end
    settle
  end

  def teardown = FileUtils.rm_rf(@root)

  def test_every_request_gets_the_same_answer
    [{}, { index: "page" }, { headers: { "x-static" => "1" } }].each do |options|
      ours = Passing.new(APP, @root, **options)
      theirs = ActionDispatch::Static.new(APP, @root, **options)
      PATHS.product(%w[GET HEAD POST], ["", "gzip", "br, gzip"]).each do |path, method, encodings|
        env = { "REQUEST_METHOD" => method, "SCRIPT_NAME" => "", "PATH_INFO" => path,
                "HTTP_ACCEPT_ENCODING" => encodings }
        assert_equal answer(theirs, env), answer(ours, env), [options, path, method, encodings].inspect
      end
    end
  end

  def test_requests_that_no_name_begins_pass_without_a_look_at_files
    names = Highball::PublicNames.new(@root, "index")
    assert(["/stations/7", "/stations", "/x.css"].all? { |path| names.lack?(path) })
    assert(PATHS.first(8).none? { |path| names.lack?(path) })
  end

  def test_a_new_file_is_found_at_once
    names = Highball::PublicNames.new(@root, "index")
    assert names.lack?("/new")
    File.write("#{@root}/new.html", "")
    refute names.lack?("/new")
    settle
    refute names.lack?("/new")
    File.delete("#{@root}/new.html")
    refute names.lack?("/new"), "the folder may change again with the same time"
    settle
    assert names.lack?("/new")
  end

  def test_another_folder_at_its_place_is_another
    names = Highball::PublicNames.new(@root, "index")
    assert names.lack?("/moved")
    FileUtils.mv(@root, "#{@root}.old")
    refute names.lack?("/moved"), "there is no folder"
    FileUtils.mkdir_p("#{@root}/moved")
    File.utime(*Array.new(2) { File.mtime("#{@root}.old") }, @root)
    refute names.lack?("/moved")
  ensure
    FileUtils.rm_rf("#{@root}.old")
  end

  def test_a_middleware_that_somebody_has_changed_is_left_alone
    install = "require 'action_controller'; require 'action_dispatch'; %s; Highball::PublicNames.install; " \
              "print ActionDispatch::Static.ancestors.first"
    changed = "ActionDispatch::Static.prepend(Module.new { def self.to_s = 'theirs' })"
    reopened = "class ActionDispatch::Static; def call(env) = @app.call(env); end"
    given = [";", changed, reopened].map do |code|
      run_ruby("highball/public_names", format(install, code), options: ["-W0"])
    end
    assert_equal ["Highball::PublicNames::Passing", "theirs", "ActionDispatch::Static"], given
  end

  private

  # As if nothing had changed for a while.
  def settle
    past = Time.now - 60 - rand
    File.utime(past, past, @root)
  end

  def answer(app, env)
    status, headers, body = app.call(env.dup)
    text = +""
    body.each { |part| text << part }
    body.close if body.respond_to?(:close)
    [status, headers.to_h, text]
  rescue StandardError => e
    [e.class, e.message]
  end
end
