# frozen_string_literal: true

module Highball
  # What to do about files, gems and constants that are not there: the rows of Causes whose words depend on the
  # exception.
  module LoadErrors
    # What the dynamic linker and Ruby say of an extension that was built for something else.
    NATIVE = Regexp.union("undefined symbol", "incompatible library version", "incompatible ABI", "wrong ELF class",
                          "invalid ELF header", "cannot open shared object", "file too short")
    # A path, and no name that could be a gem's.
    PATH = %r{\Acannot load such file -- [./]}

    CHECK_SYNTAX = lambda do |error|
      file = error.message.to_s[/\A([^\n]+?):\d+:/, 1]
      next unless file && File.exist?(file)

      file = file.delete_prefix("#{Dir.pwd}/")
      file.end_with?(".erb") ? "erb -x #{file} | ruby -c" : "ruby -c #{file}"
    end

    MISSING_FILE = lambda do |error|
      path = error.path || error.message[/-- (\S+)/, 1]
      guess = resembling(path)
      "#{path} does not exist: correct the path, or put the file back.#{" Did you mean #{guess}?" if guess}"
    end

    MISSING_GEM = lambda do |error|
      path = error.path || error.message[/-- (\S+)/, 1]
      next "A file to be loaded is missing; the message says which." unless path

      own = own_file(path)
      next "#{own} is a file of your own: load it by require_relative." if own

      "If #{path} is part of a gem, put it into the Gemfile and install it (without a Gemfile: gem install " \
        "#{gem_of(path)}). If it is a file of your own, load it by require_relative."
    end

    INSTALL = lambda do |error|
      path = error.path || error.message[/-- (\S+)/, 1]
      next if path.nil? || own_file(path)
      next "gem install #{gem_of(path)}" unless File.exist?("Gemfile")

      "bundle add #{gem_of(path)}"
    end

    REBUILD = lambda do |error|
      gem = error.message[%r{/gems/([A-Za-z0-9_-]+?)-\d[^/]*/}, 1]
      File.exist?("Gemfile") || gem.nil? ? "bundle pristine#{" #{gem}" if gem}" : "gem pristine #{gem}"
    end

    MISSING_CONSTANT = lambda do |error|
      guesses = error.respond_to?(:corrections) ? error.corrections.first(3) : []
      "Correct the name, or load the file that defines it." \
        "#{" Did you mean #{guesses.join(' or ')}?" unless guesses.empty?}"
    end

    module_function

    # "sinatra/base" is part of sinatra, and "active_record" of activerecord.
    def gem_of(path)
      first = path.split("/").first
      { "active_record" => "activerecord", "active_support" => "activesupport", "action_controller" => "actionpack",
        "rails" => "rails" }.fetch(first, first)
    end

    # The file of the application that was meant, if there is one.
    def own_file(path)
      [path, "lib/#{path}", "app/#{path}"].map { |name| name.end_with?(".rb") ? name : "#{name}.rb" }
                                          .find { |name| File.file?(name) }
    end

    # The file beside it whose name is nearly the same.
    def resembling(path)
      return unless defined?(::DidYouMean::SpellChecker)

      folder = File.dirname(path)
      return unless File.directory?(folder)

      names = Dir.children(folder).grep(/\.rb\z/).map { |name| name.delete_suffix(".rb") }
      guess = ::DidYouMean::SpellChecker.new(dictionary: names).correct(File.basename(path, ".rb")).first
      guess && File.join(folder, "#{guess}.rb")
    end

    # The file that the message of a SystemCallError names.
    def look_at(error)
      path = error.message[%r{(?:@ \w+ - | - )(/?\S+)\z}, 1]
      path && "ls -ld #{path}"
    end
  end
end
