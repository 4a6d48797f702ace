# frozen_string_literal: true

require "json"
require_relative "../../support/e2e_test"

# The forms of the access log, and which requests get a line.
class AccessLogFormatTest < E2ETest
  parallelize_me!

  APP = <<~'RUBY'
    run lambda { |env|
      case env["PATH_INFO"]
      when "/slow" then sleep 1.1
      when "/bad" then status = 500
      end
      [status || 200, {}, ["hello"]]
    }
  RUBY

  # What the test asks for until the server answers.
  READY = "/blog/ready"

  HOSTILE = "/a?\"}\\|{'%22"

  def test_json
    server = serve_app("--access-log-format", "json", "--request-id", "on")
    server.get(HOSTILE, { "User-Agent" => "a \"b\" \\ \xe2\x80\xa8 \xff c", "Host" => "blog.test:80" })
    server.exchange("nonsense\r\n\r\n")
    served, unread = lines(server, 2).map { |line| JSON.parse(line) }
    assert_equal ["GET", HOSTILE, "HTTP/1.1", 200, 5, "http", "blog.test:80", "127.0.0.1", "blog", nil, nil],
                 served.values_at(*%w[method target protocol status bytes scheme host address app referer cache])
    assert_equal "a \"b\" \\ \u2028 \ufffd c", served["agent"]
    assert_match(/\A\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z\z/, served["time"])
    assert_match(/\A\h{8}-/, served["request_id"])
    assert_equal 1, served["worker"]
    assert_operator served["seconds"], :>=, served["queue_time"] + served["service_time"]
    assert_operator served["service_time"], :>, 0
    assert_equal [400, nil, nil, nil, nil], unread.values_at(*%w[status method target app worker])
  end

  def test_a_text_with_fields
    form = "{status}|{target}|\"{agent}\" {{{method}}} queue={queue_time} service={service_time} {app}"
    server = serve_app("--access-log-format", form)
    server.get(HOSTILE, { "User-Agent" => "a \"|b" })
    server.get("/file.txt")
    served, file = lines(server, 2)
    target = HOSTILE.gsub(/["\\|{}=]/) { |character| format("\\x%02x", character.ord) }
    times = served.slice!(/queue=\d+\.\d{6} service=\d+\.\d{6} /)
    refute_nil times
    assert_equal "200|#{target}|\"a \\\"|b\" {GET} blog", served
    assert_equal '200|/file.txt|"-" {GET} queue=- service=- blog', file, "no worker had it"
  end

  def test_a_mistake_is_named_at_the_start
    output = highball_fails("config", "systemd", "--access-log-format", "{status} {stauts}", folder)
    assert_includes output, "there is no field `stauts`; the fields are time, date, address"
  end

  def test_errors_and_slow_requests_always_get_a_line
    server = serve_app("--access-log-format", "{target} {status}", "--access-log-sample", "0%")
    %w[/ /bad / /file.txt /missing.txt /slow /].each { |path| server.get(path) }
    server.exchange("nonsense\r\n\r\n")
    assert_equal ["/bad 500", "/slow 200", "- 400"], lines(server, 3)
  end

  def test_a_share_of_the_others
    server = serve_app("--access-log-format", "{status}", "--access-log-sample", "20%")
    server.connect { |connection| 500.times { connection.request("GET", "/") } }
    server.get("/bad")
    wait_for("the line of the error") { File.exist?(log) && File.read(log).include?("500") }
    assert_includes 50..160, File.readlines(log, chomp: true).count("200")
  end

  # One form for all in the server's log; another one in an application's own.
  def test_each_log_has_its_form
    blog = folder
    shop = File.join(folder_with("shop/config.ru" => APP), "shop")
    configuration = <<~TOML
      access_log = "#{log}"
      access_log_format = "server {target}"
      [[app]]
      path = "#{blog}"
      prefix = "/blog"
      [[app]]
      path = "#{shop}"
      prefix = "/shop"
      access_log = "#{log}.shop"
      access_log_format = "json"
    TOML
    options = ["serve", "-b", "127.0.0.1", "-p", "0", "-e", "production", "--config", file_with(configuration)]
    server = serve(blog, command: [HighballServer::BINARY, *options], ready: READY)
    %w[/blog/a /shop/b /nowhere].each { |path| server.get(path) }
    assert_equal ["server /blog/a", "server /nowhere"], lines(server, 2)
    assert_equal(["/shop/b"], lines(server, 1, of: "#{log}.shop").map { |line| JSON.parse(line)["target"] })
  end

  def test_the_form_belongs_to_the_log
    configuration = "access_log = '#{log}'\n[[app]]\npath = '#{folder}'\naccess_log_format = 'json'\n"
    output, = HighballServer.run("config", "systemd", "--config", file_with(configuration))
    assert_includes output, "give it an `access_log`, too"
  end

  private

  def folder
    @folder ||= File.join(folder_with("blog/config.ru" => APP, "blog/public/file.txt" => "file"), "blog")
  end

  def log = @log ||= File.join(folder_with, "access.log")

  def file_with(configuration) = File.join(folder_with("highball.toml" => configuration), "highball.toml")

  def serve_app(*options) = serve(folder, *options, "--access-log", log, workers: 1, ready: READY)

  def lines(server, count, of: log)
    all = -> { File.exist?(of) ? File.readlines(of, chomp: true).grep_v(/#{READY}/o) : [] }
    wait_for("#{count} lines") { all.call.length >= count }
    all.call.tap { |found| assert_equal count, found.length, server.log }
  end
end
