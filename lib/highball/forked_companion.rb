# frozen_string_literal: true

require_relative "checkpoint"
require_relative "message"
require_relative "native"

module Highball
  # A companion that begins as a copy of the mold: a Ruby program that finds the application loaded, and shares the
  # memory that this takes. To be made in the mold; `start` is called in the new process.
  class ForkedCompanion
    # It cannot be forked; the message says why.
    class Unusable < StandardError
    end

    # What a shell would do something with.
    OF_SHELL = /[;&|<>()$`*?\[\]{}~!\n]|\A\s*\w+=/
    BUNDLE_EXEC = %w[bundle exec].freeze

    # The process that becomes the parent of the companion, and then the program `highball`, which watches over it.
    class Guardian
      # `program` is `highball`, open. It gets its orders over `control`; `output` is for what the companion prints.
      def initialize(control, output, program)
        @control = control
        @output = output
        @program = program
      end

      # The number of its process, which the companion inherits.
      attr_reader :pid

      def begin
        @pid = Process.pid
        @may_begin, @begins = IO.pipe
        Process.setsid
        $stdin.reopen(File::NULL)
        [$stdout, $stderr].each { |stream| stream.reopen(@output).sync = true }
      end

      # Does not return.
      def watch(companion)
        Checkpoint.pass("companion.forked")
        environment = { "HIGHBALL_COMPANION_FD" => @control.fileno.to_s, "HIGHBALL_FORKED_COMPANION" => companion.to_s,
                        "HIGHBALL_FORKED_COMPANION_FD" => @begins.fileno.to_s }
        exec(environment, ["/proc/self/fd/#{@program.fileno}", "highball: companion"],
             unsetenv_others: true, close_others: true, @control => @control, @begins => @begins)
      rescue SystemCallError => e
        warn "highball: cannot watch over a process: #{e.message}"
        exit!(1) # the kernel kills the companion
      end

      # In the companion: waits until the server knows its guardian. Otherwise the process ends.
      def wait
        [@control, @output, @program, @begins].each(&:close)
        Checkpoint.pass("companion.born")
        exit!(1) unless @may_begin.read(1)
        @may_begin.close
      end
    end

    attr_reader :guardian

    # Raises Unusable.
    #
    # descriptors:: a file that says what to run (ForkedCompanion of the supervisor), and what the guardian gets.
    def initialize(descriptors)
      file, *others = descriptors
      order = Message.decode(file.read)
      file.close
      @environment = order[:environment].transform_keys(&:to_s)
      @directory = order[:directory]
      program, *@arguments = words(order[:command])
      @program = program_of(program)
      @guardian = Guardian.new(*others)
    end

    # Runs the program, and ends as a process does that Ruby has started with it.
    def start
      Native.end_with_parent(@guardian.pid)
      @guardian.wait
      Process.setpgid(0, 0)
      [*Mold::GROUP_SIGNALS, "USR2"].each { |signal| trap(signal, "DEFAULT") }
      Random.srand # or copies would draw the same numbers
      ENV.update(@environment)
      Dir.chdir(@directory) if @directory
      run
    end

    private

    def run
      $PROGRAM_NAME = @program
      ARGV.replace(@arguments)
      load(@program)
      exit
    rescue SystemExit, SignalException
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException -- Ruby reports any, too
      $stderr.write(e.full_message(highlight: false))
      exit(1)
    end

    def words(command)
      words = command.is_a?(Array) ? command : words_of_line(command)
      words.shift(2) if words.take(2) == BUNDLE_EXEC && words.length > 2
      @names_ruby = words.first == "ruby" && words.length > 1
      @names_ruby ? words.drop(1) : words
    end

    def words_of_line(line)
      raise Unusable, "`fork` takes a program and its arguments; only a shell understands: #{line}" if
        line.match?(OF_SHELL)

      require "shellwords"
      Shellwords.split(line)
    end

    # The file of this program: below the folder in which it runs, absolute, or a gem's.
    def program_of(name)
      path = File.expand_path(name, File.expand_path(@directory || ".", App::FOLDER))
      path = program_of_gem(name) unless File.file?(path)
      raise Unusable, "there is no Ruby program #{name} in this folder, and none in its gems" unless path
      raise Unusable, "#{name} is not a Ruby program: leave `fork` out" unless @names_ruby || ruby?(path)

      path
    end

    def program_of_gem(name)
      return unless defined?(::Gem::Specification)

      has_it = ->(spec) { spec.executables.include?(name) }
      (::Gem.loaded_specs.values.find(&has_it) || ::Gem::Specification.find(&has_it))&.bin_file(name)
    end

    def ruby?(path)
      first = File.open(path, "rb", &:gets).to_s
      first.start_with?("#!") ? first.match?(/\bruby/) : path.end_with?(".rb", ".ru")
    end
  end
end
