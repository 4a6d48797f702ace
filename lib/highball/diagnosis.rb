# frozen_string_literal: true

require_relative "app"
require_relative "calls"
require_relative "causes"
require_relative "message"

module Highball
  # What went wrong, in the words of the control protocol: an exception as class, message, place and backtrace, those
  # that caused it, why such things happen, and what to do about it. (Source, environment and versions of Highball are
  # added by the supervisor.)
  class Diagnosis
    MESSAGE_BYTES = 16 * 1024
    BACKTRACE_LINES = 60
    # What is told of the exceptions that caused it.
    CAUSE_LINES = 10
    CAUSE_BYTES = 2048
    # A place somewhere in a message: of a Gemfile, of a template, of a file that names a constant.
    PLACE_WITHIN = %r{(?<file>(?:/|\./|config/)[^\s:'"`]+?):(?<line>\d+)\b}
    # Whose files these are, when nobody else names a place: found by cause.
    SUSPECTS = { database_config: "config/database.yml", wrong_ruby: "Gemfile", missing_gem: "Gemfile",
                 framework_not_installed: "Gemfile", gemfile_lock: "Gemfile.lock", gemfile: "Gemfile",
                 missing_master_key: "config/credentials.yml.enc" }.freeze

    def initialize(exception, root: App::FOLDER)
      @exception = culprit(exception)
      @root = root
      @calls = Calls.new(@exception.backtrace, root)
      @cause = Causes.of(@exception)
    end

    # The message `failed`, but for the step.
    def fields
      { error: error, causes: chain.drop(1).map { |exception| brief(exception) }, cause: @cause.name,
        remedy: @cause.remedy, command: @cause.command, versions: versions }
    end

    # The same as JSON text, in at most so many bytes. Whatever the exception is, telling it raises no other.
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
      # That nothing was raised is no class of errors that people know.
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
        said = text == "exit" ? "" : "; it said: #{text}"
        text = "exit was called, with status #{@exception.status}#{said}"
      end
      text.byteslice(0, MESSAGE_BYTES)
    end

    # The line to look at first: where the parser stumbled, else the innermost line of the application, else the file
    # that the cause makes suspect.
    def place
      parsed || innermost || suspect || @calls.place
    end

    # Where a parser stumbled: Ruby's, YAML's, Bundler's, a template's.
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

    # The exception and what caused it, a few of them.
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
      wanted = @cause.name == :wrong_ruby ? /^\s*ruby\b/ : /\b#{Regexp.escape(gem || "\0")}\b/
      [path, (lines.index { |line| wanted.match?(line) } || 0) + 1]
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
