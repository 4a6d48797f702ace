# frozen_string_literal: true

require "minitest/autorun"
require "highball/handler"

class HandlerTest < Minitest::Test
  def test_names_of_all_callers_become_options
    assert_equal %w[--bind 0.0.0.0 --port 9292 --environment production --workers 12 --threads 5],
                 arguments(Host: "0.0.0.0", Port: 9292, environment: "production", workers: "12", threads: 5)
    assert_equal %w[--workers 12 --threads 4], arguments(wc: "12", tc: "4")
    assert_equal %w[--threads 16], arguments(Threads: "0:16")
    assert_equal %w[--bind 0.0.0.0], arguments(Host: "*")
    assert_equal %w[--early-hints on], arguments(early_hints: true)
  end

  def test_the_pidfile_is_absolute
    assert_equal ["--pidfile", File.expand_path("tmp/server.pid")], arguments(pid: "tmp/server.pid")
  end

  def test_what_is_not_given_is_left_to_highball
    assert_empty arguments({})
    assert_empty arguments(Host: nil, workers: "", SSLEnable: false)
  end

  def test_defaults_of_rails_server_do_not_override_the_users_configuration
    options = { Host: "localhost", Port: 3000, environment: "development" }
    assert_equal %w[--environment development], arguments(**options, user_supplied_options: [])
    assert_equal %w[--port 3000 --environment development], arguments(**options, user_supplied_options: [:Port])
  end

  def test_valid_options_are_pairs_of_words
    Highball::Handler.valid_options.each { |name, text| assert_match(/\A\w+=\w+: \w/, "#{name}: #{text}") }
  end

  private

  def arguments(options)
    Highball::Handler.arguments_for(options)
  end
end
