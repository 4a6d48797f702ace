# frozen_string_literal: true

require_relative "calls"
require_relative "spelling"
require_relative "text"

module Highball
  # Remedies for missing files, gems and constants: the texts of Causes that depend on the exception. They are given its
  # ExceptionWords.
  module LoadErrors
    # Messages of the dynamic linker and of Ruby about an extension that was built for another system or Ruby.
    NATIVE = Regexp.union("undefined symbol", "incompatible library version", "incompatible ABI", "wrong ELF class",
                          "invalid ELF header", "cannot open shared object", "file too short")
    # A path, not a name that could be a gem's.
    PATH = %r{\Acannot load such file -- [./]}

    CHECK_SYNTAX = lambda do |error|
      file, = Calls.split(error.message)
      next unless file && File.exist?(file)

      file = error.quote(file.delete_prefix("#{Text.of(Dir.pwd)}/"))
      file.end_with?(".erb") ? "erb -x #{file} | ruby -c" : "ruby -c #{file}"
    end

    MISSING_FILE = lambda do |error|
      path = path_of(error)
      guess = error.quote(resembling(path))
      "#{path} does not exist: correct the path, or restore the file.#{" Did you mean #{guess}?" if guess}"
    end

    MISSING_GEM = lambda do |error|
      path = path_of(error)
      next "A file is missing; see the message for its name." unless path

      own = own_file(path)
      next "#{own} is a file of this application: load it with require_relative." if own

      "If #{path} is part of a gem, add the gem to the Gemfile and install it (without a Gemfile: gem install " \
        "#{gem_of(error, path)}). If it is a file of this application, load it with require_relative."
    end

    INSTALL = lambda do |error|
      path = path_of(error)
      next if path.nil? || own_file(path)
      next "gem install #{gem_of(error, path)}" unless File.exist?("Gemfile")

      "bundle add #{gem_of(error, path)}"
    end

    REBUILD = lambda do |error|
      gem = error.quote(error.message[%r{/gems/([A-Za-z0-9_-]+?)-\d[^/]*/}, 1])
      File.exist?("Gemfile") || gem.nil? ? "bundle pristine#{" #{gem}" if gem}" : "gem pristine #{gem}"
    end

    MISSING_CONSTANT = lambda do |error|
      guesses = error.guesses.each { |guess| error.quote(guess) }
      "Correct the name, or load the file that defines it." \
        "#{" Did you mean #{guesses.join(' or ')}?" unless guesses.empty?}"
    end

    module_function

    def path_of(error) = error.quote(error.path || error.message[/-- (\S+)/, 1])

    # "sinatra/base" is part of sinatra, and "active_record" of activerecord.
    def gem_of(error, path)
      first = error.quote(path.split("/").first.to_s)
      { "active_record" => "activerecord", "active_support" => "activesupport", "action_controller" => "actionpack",
        "rails" => "rails" }.fetch(first, first)
    end

    # The application's file with this name, or nil.
    def own_file(path)
      [path, "lib/#{path}", "app/#{path}"].map { |name| name.end_with?(".rb") ? name : "#{name}.rb" }
                                          .find { |name| File.file?(name) }
    end

    # A file in the same folder with a similar name, or nil.
    def resembling(path)
      folder = File.dirname(path)
      return unless File.directory?(folder)

      files = Dir.children(folder).select { |name| name.end_with?(".rb") }
      names = files.map { |name| Text.of(name.delete_suffix(".rb")) }
      guess = Spelling.near(File.basename(path, ".rb"), names)
      guess && File.join(folder, "#{guess}.rb")
    rescue SystemCallError
      nil # it may not be read
    end

    # The file that the message of a SystemCallError names.
    def look_at(error)
      path = error.quote(error.message[%r{(?:@ \w+ - | - )(/?\S+)\z}, 1])
      path && "ls -ld #{path}"
    end
  end
end
