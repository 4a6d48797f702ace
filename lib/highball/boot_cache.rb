# frozen_string_literal: true

require "rbconfig"
require_relative "boot_cache/ahead"
require_relative "boot_cache/compiled_file"
require_relative "boot_cache/folder"

module Highball
  # Instruction sequences of the files that an application and Highball load, kept from one boot to the next, so that
  # Ruby does not have to parse and compile them again: a third of the time that Rails takes to boot.
  #
  # Files that are not in the cache, or have changed, Ruby compiles as always. After the boot another process of the
  # same user compiles them again, and puts them into the cache (`boot_cache/writer.rb`). Where many are lacking,
  # another process also compiles files during the boot, ahead of it (`boot_cache/ahead_writer.rb`). The cache is left
  # alone where something else provides instruction sequences (Bootsnap), or needs to see Ruby compile (Coverage).
  class BootCache
    # It cannot be used; the message says why.
    class Unusable < StandardError
    end

    # What `highball` has decided: `on`; `ahead`, if another process may also compile ahead of the boot; or why it is
    # off.
    DECISION = "HIGHBALL_COMPILED_FILES"
    ON = "on"
    AHEAD = "ahead"
    WRITER = File.expand_path("boot_cache/writer.rb", __dir__)
    AHEAD_WRITER = File.expand_path("boot_cache/ahead_writer.rb", __dir__)
    # Options of Ruby that change what it compiles are not known to the writer otherwise.
    OPTIONS = RubyVM::InstructionSequence.compile_option.freeze
    # For RubyVM::InstructionSequence, which Ruby asks for each file.
    module Loading
      def load_iseq(path) = BootCache.current&.load(path)
    end

    class << self
      # The cache in use.
      attr_reader :current

      # Takes the decision out of the environment.
      def take_decision
        @decision = ENV.delete(DECISION)
      end

      # Calls the block, in which files are loaded from the cache. Returns what it returns. A boot has several such
      # blocks.
      #
      # app:: the folder of the application that is loaded in the block, if another process may compile ahead of that.
      def during(app: nil)
        @current = @last ||= open
        @current&.begin_ahead(app) if app && @decision == AHEAD
        yield
      ensure
        @last&.stop_ahead
        @counts = @last&.counts
        @current = nil
      end

      # Whether this boot has loaded files that the cache lacks.
      def lacks_files? = !@last.nil? && @last.lacks_files?

      # Starts a process that puts these files into the cache.
      def write
        @last&.write
        forget
      end

      # For a process that was forked: its mold writes.
      def forget = @last = nil

      # {name: what the cache had}, or {off: why it is off}.
      def description
        return { off: @decision } unless @counts

        { name: "#{@counts.join(' of ')} files" }
      end

      private

      def open
        return unless [ON, AHEAD].include?(@decision)
        raise Unusable, "another library provides instruction sequences, or measures coverage" if taken?

        new(Folder.of).tap { install }
      rescue Unusable => e
        @decision = e.message
        nil
      end

      def taken?
        return true if defined?(::Coverage) && ::Coverage.running?

        RubyVM::InstructionSequence.respond_to?(:load_iseq) && !@installed
      end

      def install
        RubyVM::InstructionSequence.singleton_class.prepend(Loading) unless @installed
        @installed = true
      end
    end

    # The part of the cache for this Ruby and its options.
    def self.part
      ruby = [RUBY_ENGINE, RUBY_VERSION, RUBY_PATCHLEVEL, RUBY_REVISION[0, 10], RUBY_PLATFORM].join("-")
      options = OPTIONS.sort.map { |_name, value| value ? 1 : 0 }.join
      "#{ruby}-#{options}"
    end

    def initialize(folder)
      @folder = File.join(folder, BootCache.part)
      @lacking = []
      @found = 0
    end

    def lacks_files? = !@lacking.empty?

    # How many files it had, and how many were loaded.
    def counts = [@found, @found + @lacking.length]

    # The instruction sequence of this file; nil if Ruby is to compile it.
    def load(path)
      return unless RubyVM::InstructionSequence.compile_option == OPTIONS

      place = CompiledFile.place(@folder, path) or return
      binary = binary_of(path, place)
      return lacks(path) unless binary

      sequence = RubyVM::InstructionSequence.load_from_binary(binary)
      @found += 1
      sequence
    rescue StandardError # of another Ruby, or damaged
      lacks(path)
    end

    def write
      return if @lacking.empty?

      paths = list(@lacking.join("\0"))
      start(WRITER, paths, Process.ppid)
    rescue SystemCallError => e
      warn "highball: the boot cache is not written: #{e.message}"
    ensure
      paths&.close
    end

    # From here on, another process may compile files of the application in this folder, and of its gems.
    def begin_ahead(app)
      @ahead = Ahead.new { |paths| start(AHEAD_WRITER, paths, Process.pid, app) }
    end

    def stop_ahead
      @ahead&.stop
      @ahead = nil
    end

    private

    def lacks(path)
      @lacking << path
      @ahead&.tell(@lacking)
      nil
    end

    # Starts this program, which ends with the process of this id, through an intermediate process, so that `highball`
    # reaps it.
    def start(program, input, pid, *arguments)
      intermediate = Process.fork do
        Process.spawn({ "RUBYOPT" => nil, "RUBYLIB" => nil }, RbConfig.ruby, "--disable-gems", program, @folder,
                      pid.to_s, *arguments, in: input, close_others: true)
        exit!(0)
      rescue SystemCallError
        exit!(1)
      end
      Process.wait(intermediate)
    end

    # A file without a name, to read this text from.
    def list(text)
      path = "#{File.dirname(@folder)}/list-#{Process.pid}"
      File.open(path, File::RDWR | File::CREAT | File::EXCL, 0o600).tap do |file|
        File.unlink(path)
        file.write(text)
        file.rewind
      end
    end

    def binary_of(path, place)
      bytes = File.binread(place)
      CompiledFile.decode(bytes, CompiledFile.identity(File.stat(path)))
    rescue SystemCallError
      nil
    end
  end
end
