# frozen_string_literal: true

require "fileutils"
require_relative "question"

# An application whose every answer has its version: a number that it read when it was loaded.
class VersionedApp
  PATTERN = "0123456789abcdef"

  # Answers with the version, what was sent, and as many bytes of a pattern as were asked for.
  CONFIG = <<~RUBY.freeze
    VERSION = File.read(File.join(__dir__, "version"))
    run lambda { |env|
      sent = env["rack.input"] ? env["rack.input"].read : ""
      bytes = env["QUERY_STRING"].to_s[/\\Apattern=(\\d+)\\z/, 1].to_i
      pieces = ["\#{VERSION} \#{sent}", *("#{PATTERN}" * (bytes / 16)).scan(/.{1,4096}/m)]
      [200, { "content-type" => "text/plain", "x-version" => VERSION }, pieces]
    }
  RUBY

  # Puts this version into the folder. Each file is replaced atomically, because a server may be reading it.
  def self.write(folder, number, config = CONFIG)
    { "version" => number.to_s, "config.ru" => config }.each do |name, content|
      File.write(File.join(folder, "#{name}.new"), content)
      File.rename(File.join(folder, "#{name}.new"), File.join(folder, name))
    end
  end

  attr_reader :folder, :version

  # In this folder, which is there and empty.
  def initialize(folder)
    @folder = folder
    release
  end

  def env = {}
  def ready = "/"

  # Replaces this version by the next one.
  def release
    @version = @version.to_i + 1
    self.class.write(folder, @version)
  end

  # One request of every kind: with and without a body, small and large, whole and in chunks.
  QUESTIONS = [
    ["GET", 0, 0, false], ["POST", 12, 0, false], ["HEAD", 0, 0, false], ["GET", 0, 16_000, false],
    ["POST", 2_000, 0, true], ["GET", 0, 0, false], ["POST", 40_000, 32_000, false], ["HEAD", 0, 16_000, false],
    ["PUT", 300, 0, false], ["GET", 0, 128_000, false], ["POST", 70_000, 0, true], ["POST", 300_000, 0, false]
  ].map do |method, sent_bytes, pattern_bytes, chunked|
    target = pattern_bytes.zero? ? "/" : "/?pattern=#{pattern_bytes}"
    body = (("A".."Z").to_a.join * ((sent_bytes / 26) + 1))[0, sent_bytes] if sent_bytes.positive?
    Question.new(method, target, body: body, chunked: chunked) do |answer|
      due = "#{answer['x-version']} #{body}#{PATTERN * (pattern_bytes / 16)}"
      [method == "HEAD" ? "" : due, answer.body]
    end
  end.freeze

  # The requests of clients.
  def questions(_server) = QUESTIONS
end
