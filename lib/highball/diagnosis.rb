# frozen_string_literal: true

require_relative "app"
require_relative "calls"
require_relative "causes"
require_relative "message"

module Highball
  # An exception as the control protocol describes it: class, message, place, backtrace, the exceptions that caused it,
  # the known cause, and the remedy. (The supervisor adds source, environment and Highball's version.)
  class Diagnosis
    MESSAGE_BYTES = 16 * 1024
    BACKTRACE_LINES = 60
    # Limits for the exceptions that caused it.
    CAUSE_LINES = 10
    CAUSE_BYTES = 2048
    # A place somewhere in a message: in a Gemfile, a template, or a file that names a constant.
    PLACE_WITHIN = %r{(?<file>(?:/|\./|config/)[^\s:'"`]+?):(?<line>\d+)\b}
    # The file to look at, by cause, if neither the message nor the backtrace names a place.
    SUSPECTS = { database_config: "config/database.yml", wrong_ruby: "Gemfile", missing_gem: "Gemfile",
                 framework_not_installed: "Gemfile", gemfile_lock: "Gemfile.lock", gemfile: "Gemfile",
                 missing_master_key: "config/credentials.yml.enc" }.freeze

    def initialize(exception, root: App::FOLDER)
      @exception = culprit(exception)
      @root = root
      @calls = Calls.new(@exception.backtrace, root)
      @cause = Causes.of(@exception)
    end

    # The fields of the message `failed`, except for the step.
    def fields
      { error: error, causes: chain.drop(1).map { |exception| brief(exception) }, cause: @cause.name,
        remedy: @cause.remedy, command: @cause.command, versions: versions }
    end

    # The same as JSON text, in at most `most_bytes`. Never raises, whatever the exception is.
    def self.text_of(exception, most_bytes)
      text = Message.encode(new(exception).fields)
      text.bytesize <= most_bytes ? text : Message.encode(in_a_line(exception))
    rescue StandardError, SystemStackError
      Message.encode(in_a_line(exception))
    end

    def self.in_a_line(exception)
      words = { class: ExceptionWords.class_name(exception), message: ExceptionWords.message(exception)[0, 1000] }
      { error: words, cause: :exception }
    end
    private_class_method :in_a_line

    def error
      file, line = place
      # A boot timeout is no exception of the application: it has no class to show.
      name = @cause.name == :boot_timeout ? "" : ExceptionWords.class_name(@exception)
      { class: name, message: message, file: file, line: line, backtrace: @calls.first(BACKTRACE_LINES) }
    end

    private

    # An exception that caused another.
    def brief(exception)
      calls = Calls.new(exception.backtrace, @root)
      file, line = calls.place
      { class: ExceptionWords.class_name(exception),
        message: ExceptionWords.message(exception).byteslice(0, CAUSE_BYTES),
        file: file, line: line, backtrace: calls.first(CAUSE_LINES) }
    end

    # `bundler/setup` on a terminal prints its error and exits: the error is what matters.
    def culprit(exception)
      exception.is_a?(SystemExit) && exception.cause ? exception.cause : exception
    end

    def message
      text = ExceptionWords.message(@exception)
      if @exception.is_a?(SystemExit)
        detail = text == "exit" ? "" : " and the message: #{text}"
        text = "exit was called with status #{@exception.status}#{detail}"
      end
      text.byteslice(0, MESSAGE_BYTES)
    end

    # The line to look at first: where a parser failed, else the innermost line of the application, else the file that
    # the cause names.
    def place
      parsed || innermost || suspect || @calls.place
    end

    # Where a parser failed: Ruby's, YAML's, Bundler's, a template's.
    def parsed
      chain.each do |error|
        return [File.expand_path(error.file, @root), error.line] if yaml?(error) && error.file

        place = Calls.split(error.message) if error.is_a?(SyntaxError)
        return place if place
      end
      match = PLACE_WITHIN.match(message) if %i[gemfile missing_constant].include?(@cause.name)
      match && [File.expand_path(match[:file], @root), match[:line].to_i]
    end

    def yaml?(error) = defined?(::Psych::SyntaxError) && error.is_a?(::Psych::SyntaxError)

    # The exception and those that caused it, at most five.
    def chain
      first = @exception
      Array.new(5) { first.tap { first &&= first.cause } }.compact
    end

    def innermost
      return if %i[database_config wrong_ruby].include?(@cause.name)

      @calls.innermost
    end

    # The line of the suspect that names the gem, or its first.
    def suspect
      name = SUSPECTS[@cause.name] or return
      path = File.join(@root, name)
      return ([path, nil] if @cause.name == :database_config) unless File.file?(path)

      gem = message[/gem '([\w-]+)|find (?:gem )?'?([\w-]+?)(?:-\d|'|,)/, 1] || Regexp.last_match&.[](2)
      lines = File.foreach(path).first(2000)
      index = wanted_lines(gem).lazy.filter_map { |wanted| lines.index { |line| wanted.match?(line) } }.first
      [path, (index || 0) + 1]
    end

    # What the line looks like, the likeliest first: that of the gem itself, or one that names it and is no comment.
    def wanted_lines(gem)
      return [/^\s*ruby\b/] if @cause.name == :wrong_ruby

      name = Regexp.escape(gem || "\0")
      [/^\s*gem[\s(]+["']#{name}["']/, /^\s*[^#\s].*\b#{name}\b|^\s*#{name}\b/]
    end

    # The versions of what is loaded.
    def versions
      known = { "Ruby" => "#{RUBY_ENGINE} #{RUBY_VERSION} (#{RUBY_PLATFORM})", "Rack" => "::Rack::RELEASE",
                "Bundler" => "::Bundler::VERSION", "Rails" => "::Rails::VERSION::STRING",
                "Sinatra" => "::Sinatra::VERSION" }
      known.filter_map do |name, version|
        next [name, version] unless version.start_with?("::")

        [name, Object.const_get(version)] if Object.const_defined?(version)
      end.to_h
    rescue NameError
      {} # another library defines a constant of that name
    end
  end
end
