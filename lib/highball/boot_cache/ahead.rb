# frozen_string_literal: true

module Highball
  class BootCache
    # For a boot that lacks many files: tells another process which ones, so that this process compiles what comes next
    # (`ahead_writer.rb`). The two use two CPUs, and the boot then takes less time.
    #
    # What it sends is each path, followed by NUL; an empty path at the end of the boot.
    class Ahead
      # Starting another process pays if as many files are lacking: fewer are after a change of the application, and all
      # of its files in a new release folder.
      MANY = 20
      # A longer path might be written in parts (pipe(7), PIPE_BUF).
      LONGEST = 4096
      END_MARK = ""

      # The block starts the process, with this input.
      def initialize(&start)
        @start = start
        @passed = 0
      end

      # lacking:: the paths of all files that this boot has compiled so far. It does not wait for the process.
      def tell(lacking)
        return if lacking.length < MANY || @is_over

        pipe = @pipe ||= open
        lacking.drop(@passed).each { |path| pass(path, pipe) }
        @passed = lacking.length
      rescue SystemCallError, IOError => e
        warn "highball: files are not compiled ahead of the boot any more: #{e.message}"
        close
      end

      # The application is loaded.
      def stop
        pass(END_MARK, @pipe) if @pipe
      rescue SystemCallError
        nil # the process has ended
      ensure
        close
      end

      private

      def open
        input, output = IO.pipe(binmode: true)
        start(input)
        output
      ensure
        input&.close
      end

      # In another thread, because `$?` of this one is the application's.
      def start(input)
        starting = Thread.new { @start.call(input) }
        starting.report_on_exception = false
        starting.join
      end

      def pass(path, pipe)
        pipe.write_nonblock("#{path}\0", exception: false) if path.bytesize < LONGEST
      end

      def close
        @is_over = true
        @pipe&.close
        @pipe = nil
      end
    end
  end
end
