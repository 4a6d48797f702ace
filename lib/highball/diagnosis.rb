# frozen_string_literal: true

require_relative "app"
require_relative "calls"
require_relative "causes"
require_relative "message"

module Highball
  # An exception as the control protocol describes it: class, message, place, backtrace, the exceptions that caused it,
  # the known cause, and the remedy. (The supervisor adds source, environment and Highball's version.)
  class Diagnosis
    MESSAGE_BYTES = ExceptionWords::MESSAGE_BYTES
    BACKTRACE_LINES = 60
    # Limits for the exceptions that caused it, and for what has to be short.
    CAUSE_LINES = 10
    CAUSE_BYTES = 2048
    # Those for a remedy and a command, and for what is searched for a place.
    REMEDY_BYTES = 2048
    SEARCHED_BYTES = 4096
    # The most that all fields take of a message, as JSON text: as many again are left for what stands beside them.
    FIELDS_BYTES = 56 * 1024
    # A place somewhere in a message: in a Gemfile, a template, or a file that names a constant.
    PLACE_WITHIN = %r{(?<file>(?:/|\./|config/)[^\s:'"`]+?):(?<line>\d+)\b}
    # The gem that Bundler's message is about.
    GEM_WITHIN = /gem '([\w-]+)|find (?:gem )?'?([\w-]+?)(?:-\d|'|,)/
    # The file to look at, by cause, if neither the message nor the backtrace names a place.
    SUSPECTS = { database_config: "config/database.yml", wrong_ruby: "Gemfile", missing_gem: "Gemfile",
                 framework_not_installed: "Gemfile", gemfile_lock: "Gemfile.lock", gemfile: "Gemfile",
                 missing_master_key: "config/credentials.yml.enc", wrong_encoding: "config.ru" }.freeze

    # The fields of the message `failed`, except for the step, in at most `most_bytes` as JSON text. Never raises,
    # whatever the exception is: a diagnosis that fails is logged, and what the exception says is shown without one.
    def self.fields_of(exception, most_bytes = FIELDS_BYTES, root: App::FOLDER)
      diagnosis = new(exception, root: root)
      fields = diagnosis.fields
      Message.encode(fields).bytesize <= most_bytes ? fields : diagnosis.brief_fields
    rescue Exception => e # rubocop:disable Lint/RescueException -- no memory, no stack, or what a method raises that was replaced
      note_failure(e)
      { error: in_a_line(exception), cause: :exception }
    end

    # The same as JSON text.
    def self.text_of(exception, most_bytes) = Message.encode(fields_of(exception, most_bytes))

    def self.note_failure(error)
      Log.new.error(:diagnosis_failed, **ExceptionWords.new(error).facts)
    rescue Exception # rubocop:disable Lint/RescueException -- there is no way to say so
      nil
    end

    def self.in_a_line(exception)
      words = ExceptionWords.of(exception)
      { class: words.class_name, message: Text.cut(words.message, CAUSE_BYTES) }
    rescue Exception # rubocop:disable Lint/RescueException -- there may be no memory for more
      { class: "", message: "an exception that cannot be shown" }
    end
    private_class_method :note_failure, :in_a_line

    def initialize(exception, root: App::FOLDER)
      @error = culprit(ExceptionWords.of(exception))
      @root = root
      @calls = Calls.new(@error.lines, root)
      @cause = Causes.of(@error)
    end

    def fields
      { error: error, causes: @error.causes.map { |cause| brief(cause) }, cause: @cause.name,
        remedy: short(@cause.remedy), command: short(@cause.command),
        quoted: @cause.quoted.map { |text| short(text) }.uniq, versions: versions }
    end

    # The same without what is long.
    def brief_fields
      { **fields, error: { **error, message: Text.cut(message, CAUSE_BYTES), backtrace: @calls.first(CAUSE_LINES) },
                  causes: [] }
    end

    def error
      file, line = place
      # A boot timeout is no exception of the application: it has no class to show.
      name = @cause.name == :boot_timeout ? "" : @error.class_name
      { class: name, message: message, file: file, line: line, backtrace: @calls.first(BACKTRACE_LINES) }
    end

    private

    def short(text) = text && Text.cut(text, REMEDY_BYTES)

    # An exception that caused another.
    def brief(error)
      calls = Calls.new(error.lines, @root)
      file, line = calls.place
      { class: error.class_name, message: Text.cut(error.message, CAUSE_BYTES), file: file, line: line,
        backtrace: calls.first(CAUSE_LINES) }
    end

    # `bundler/setup` on a terminal prints its error and exits: the error is what matters.
    def culprit(error) = (error.causes.first if error.is?("SystemExit")) || error

    def message
      text = @error.message
      if @error.is?("SystemExit")
        detail = text == "exit" ? "" : " and the message: #{text}"
        text = "exit was called with status #{@error.status}#{detail}"
      end
      Text.cut(text, MESSAGE_BYTES)
    end

    # The line to look at first: where a parser failed, else the innermost line of the application, else the file that
    # the cause names.
    def place
      parsed || innermost || suspect || @calls.place
    end

    # Where a parser failed: Ruby's, YAML's, Bundler's, a template's.
    def parsed
      [@error, *@error.causes].each do |error|
        return [absolute(error.file), error.line] if error.is?("Psych::SyntaxError") && error.file

        place = Calls.split(error.message) if error.is?("SyntaxError")
        return place if place
      end
      return unless %i[gemfile missing_constant].include?(@cause.name)

      match = PLACE_WITHIN.match(Text.cut(message, SEARCHED_BYTES))
      match && [absolute(match[:file]), match[:line].to_i]
    end

    def absolute(file) = File.absolute_path(file, Text.of(@root))

    def innermost
      return if %i[database_config wrong_ruby].include?(@cause.name)

      @calls.innermost
    end

    # The line of the suspect that names the gem, or its first.
    def suspect
      name = SUSPECTS[@cause.name] or return
      path = File.join(@root, name)
      return ([Text.of(path), nil] if @cause.name == :database_config) unless File.file?(path)

      gem = GEM_WITHIN.match(Text.cut(message, SEARCHED_BYTES))&.captures&.compact&.first
      lines = Text.lines(path)
      index = Text.strange_line(path) if @cause.name == :wrong_encoding
      index ||= wanted_lines(gem).lazy.filter_map { |wanted| lines.index { |line| wanted.match?(line) } }.first
      [Text.of(path), (index || 0) + 1]
    end

    # What the line looks like, the likeliest first: the gem's own, or any that names it and is no comment.
    def wanted_lines(gem)
      return [/^\s*ruby\b/] if @cause.name == :wrong_ruby

      name = Regexp.escape(gem || "\0")
      [/^\s*gem[\s(]+["']#{name}["']/, /^\s*[^#\s].*\b#{name}\b|^\s*#{name}\b/]
    end

    # The versions of what is loaded.
    def versions
      known = { "Ruby" => "#{RUBY_ENGINE} #{RUBY_VERSION} (#{RUBY_PLATFORM})", "Rack" => "::Rack::RELEASE",
                "Bundler" => "::Bundler::VERSION", "Rails" => "::Rails::VERSION::STRING",
                "Sinatra" => "::Sinatra::VERSION", "web-console" => "::WebConsole::VERSION" }
      known.filter_map do |name, version|
        next [name, version] unless version.start_with?("::")

        [name, Object.const_get(version)] if Object.const_defined?(version)
      end.to_h
    rescue NameError
      {} # another library defines a constant of that name
    end
  end
end
