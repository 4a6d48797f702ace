# frozen_string_literal: true

require "rbconfig"
require_relative "boot_cache/compiled_file"
require_relative "boot_cache/folder"

module Highball
  # Instruction sequences of the files that an application and Highball load, kept from one boot to the next, so that
  # Ruby does not have to parse and compile them again: a third of the time that Rails takes to boot.
  #
  # Files that are not in the cache, or have changed, Ruby compiles as always. After the boot another process of the
  # same user compiles them again, and puts them into the cache (`boot_cache/writer.rb`). The cache is left alone where
  # something else provides instruction sequences (Bootsnap), or needs to see Ruby compile (Coverage).
  class BootCache
    # It cannot be used; the message says why.
    class Unusable < StandardError
    end

    # What `highball` has decided: `on`, or why it is off.
    DECISION = "HIGHBALL_COMPILED_FILES"
    WRITER = File.expand_path("boot_cache/writer.rb", __dir__)
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
      def during
        @current = @last ||= open
        yield
      ensure
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
        return if @decision != "on"
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

    # Through an intermediate process, so that `highball`, whose process id is the writer's second argument, reaps it.
    def write
      return if @lacking.empty?

      paths = list(@lacking.join("\0"))
      server = Process.ppid.to_s
      intermediate = Process.fork do
        Process.spawn({ "RUBYOPT" => nil, "RUBYLIB" => nil }, RbConfig.ruby, "--disable-gems", WRITER, @folder,
                      server, in: paths, close_others: true)
        exit!(0)
      rescue SystemCallError
        exit!(1)
      end
      Process.wait(intermediate)
    rescue SystemCallError => e
      warn "highball: the boot cache is not written: #{e.message}"
    ensure
      paths&.close
    end

    private

    def lacks(path)
      @lacking << path
      nil
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
