# frozen_string_literal: true

require_relative "app"
require_relative "causes"

module Highball
  # What went wrong, in the words of the control protocol: an exception as class, message, place and backtrace, its
  # cause, and what to do about it. (Source, environment and versions of Highball are added by the supervisor.)
  class Diagnosis
    MESSAGE_BYTES = 16 * 1024
    BACKTRACE_LINES = 60
    # Frames that are the same in every boot, and say nothing about this one.
    NOISE = %r{\A(?:<internal:|#{Regexp.escape(__dir__)}/)|/bundler(?:-[\d.]+)?/lib/bundler/|/rubygems/}
    # "/path/file.rb:12: syntax error" and "/path/file.rb:12:in `x'"
    PLACE = /\A(?<file>[^\n]+?):(?<line>\d+)(?::|\z)/
    # The same somewhere in a message: of a Gemfile, of a template, of a file that names a constant.
    PLACE_WITHIN = %r{(?<file>(?:/|\./|config/)[^\s:'"`]+?):(?<line>\d+)\b}
    # Whose files these are, when nobody else names a place: found by cause.
    SUSPECTS = { database_config: "config/database.yml", wrong_ruby: "Gemfile", missing_gem: "Gemfile",
                 framework_not_installed: "Gemfile", gemfile_lock: "Gemfile.lock", gemfile: "Gemfile",
                 missing_master_key: "config/credentials.yml.enc" }.freeze

    def initialize(exception, root: App::FOLDER)
      @exception = culprit(exception)
      @root = root
      @cause = Causes.of(@exception)
    end

    # The message `failed`, but for the step.
    def fields
      { error: error, cause: @cause.name, remedy: @cause.remedy, command: @cause.command, versions: versions }
    end

    def error
      file, line = place
      # That nothing was raised is no class of errors that people know.
      name = @cause.name == :boot_timeout ? "" : @exception.class.name
      { class: name, message: message, file: file, line: line, backtrace: backtrace }
    end

    private

    # `bundler/setup` on a terminal prints its error and exits: the error is what matters.
    def culprit(exception)
      exception.is_a?(SystemExit) && exception.cause ? exception.cause : exception
    end

    def message
      text = @exception.message.to_s
      if @exception.is_a?(SystemExit)
        said = text == "exit" ? "" : "; it said: #{text}"
        text = "exit was called, with status #{@exception.status}#{said}"
      end
      text.byteslice(0, MESSAGE_BYTES)
    end

    # The line to look at first: where the parser stumbled, else the innermost line of the application, else the file
    # that the cause makes suspect.
    def place
      parsed || innermost || suspect || split(backtrace.first)
    end

    # Where a parser stumbled: Ruby's, YAML's, Bundler's, a template's.
    def parsed
      chain.each do |error|
        return [File.expand_path(error.file, @root), error.line] if yaml?(error) && error.file
        return split(error.message) if error.is_a?(SyntaxError) && split(error.message)
      end
      match = PLACE_WITHIN.match(message) if %i[gemfile missing_constant].include?(@cause.name)
      match && [File.expand_path(match[:file], @root), match[:line].to_i]
    end

    def yaml?(error) = defined?(::Psych::SyntaxError) && error.is_a?(::Psych::SyntaxError)

    # The exception and what caused it, a few of them.
    def chain
      first = @exception
      Array.new(5) { first.tap { first &&= first.cause } }.compact
    end

    def innermost
      return if %i[database_config wrong_ruby].include?(@cause.name)

      split(backtrace.find { |line| of_the_application?(line) })
    end

    # The line of the suspect that names the gem, or its first.
    def suspect
      name = SUSPECTS[@cause.name] or return
      path = File.join(@root, name)
      return ([path, nil] if @cause.name == :database_config) unless File.file?(path)

      gem = message[/gem '([\w-]+)|find (?:gem )?'?([\w-]+?)(?:-\d|'|,)/, 1] || Regexp.last_match&.[](2)
      lines = File.foreach(path).first(2000)
      wanted = @cause.name == :wrong_ruby ? /^\s*ruby\b/ : /\b#{Regexp.escape(gem || "\0")}\b/
      [path, (lines.index { |line| wanted.match?(line) } || 0) + 1]
    end

    def split(line)
      match = PLACE.match(line.to_s) and [match[:file], match[:line].to_i]
    end

    def of_the_application?(line)
      line.start_with?("#{@root}/") && !line.start_with?("#{@root}/vendor/")
    end

    def backtrace
      lines = (@exception.backtrace || []).grep_v(NOISE)
      lines.first(BACKTRACE_LINES).map { |line| line.byteslice(0, 1024) }
    end

    # What is loaded by now.
    def versions
      known = { "Ruby" => "#{RUBY_ENGINE} #{RUBY_VERSION} (#{RUBY_PLATFORM})", "Rack" => "::Rack::RELEASE",
                "Bundler" => "::Bundler::VERSION", "Rails" => "::Rails::VERSION::STRING",
                "Sinatra" => "::Sinatra::VERSION" }
      known.filter_map do |name, version|
        next [name, version] unless version.start_with?("::")

        [name, Object.const_get(version)] if Object.const_defined?(version)
      end.to_h
    rescue NameError
      {} # a constant of that name that is something else
    end
  end
end
