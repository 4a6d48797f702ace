# frozen_string_literal: true

require "fileutils"
require_relative "compiled_file"

module Highball
  class BootCache
    # A program: compiles the Ruby files that standard input names, separated by NUL, and puts them into the part of the
    # cache that its first argument names. With the lowest priority: it has time until the next boot. It ends with
    # the process whose id is its second argument: `highball`.
    class Writer
      LOWEST_PRIORITY = 19
      # Parts of other Rubies go, and then the oldest files, when the cache is larger than this.
      MOST_BYTES = 256 << 20
      # Files that only a boot would be slower without, and that are too large to be worth it.
      LARGEST = 4 << 20

      # These bytes as Ruby has paths. It keeps a path with the code (`__FILE__`).
      def self.paths(bytes) = bytes.map { |path| path.force_encoding(Encoding.find("filesystem")) }

      # Calls the block with a writer for these arguments of a program.
      def self.run(folder, pid)
        yield new(folder, Integer(pid))
      rescue SystemCallError => e
        $stderr.puts "highball: the boot cache cannot be written: #{e.message}" # rubocop:disable Style/StderrPuts
        exit 1
      end

      def initialize(folder, pid, most_bytes: MOST_BYTES)
        @folder = folder
        @pid = pid
        @most_bytes = most_bytes
      end

      def write(paths)
        prepare
        paths.each { |path| add(path) if needed? }
      end

      def prepare
        Process.setpriority(Process::PRIO_PROCESS, 0, LOWEST_PRIORITY)
        File.umask(0o077)
        $VERBOSE = nil # the boot warns; `warn` is silent then
        make_room
      end

      # Whether the process with which it ends still runs.
      def needed?
        Process.kill(0, @pid) == 1
      rescue Errno::EPERM
        true # it is `highball`, and root's
      rescue Errno::ESRCH
        false
      end

      # What cannot be compiled or read is no matter: the next boot says what is wrong with it.
      def add(path)
        stat = File.stat(path)
        identity = CompiledFile.identity(stat)
        place = CompiledFile.place(@folder, path)
        return if place.nil? || !stat.file? || stat.size > LARGEST

        binary = RubyVM::InstructionSequence.compile_file(path).to_binary
        return unless CompiledFile.identity(File.stat(path)) == identity

        put(place, CompiledFile.encode(identity, binary))
      rescue SyntaxError, StandardError => e
        raise if e.is_a?(Errno::ENOSPC) || e.is_a?(Errno::EDQUOT) || e.is_a?(Errno::EROFS)
      end

      # Whether the cache has this file. (Damaged content is not noticed.)
      def has?(path)
        place = CompiledFile.place(@folder, path) or return false
        beginning = CompiledFile.beginning(CompiledFile.identity(File.stat(path)))
        File.binread(place, beginning.bytesize) == beginning
      rescue SystemCallError
        false
      end

      private

      def put(path, content)
        temporary = "#{path}.#{Process.pid}"
        FileUtils.mkdir_p(File.dirname(path))
        File.open(temporary, File::WRONLY | File::CREAT | File::EXCL, 0o600, binmode: true) do |file|
          file.write(content)
        end
        File.rename(temporary, path)
      rescue SystemCallError
        FileUtils.rm_f(temporary)
        raise
      end

      def make_room
        FileUtils.mkdir_p(@folder)
        return if files_below(File.dirname(@folder)).sum { |_, stat| stat.size } <= @most_bytes

        FileUtils.rm_rf(Dir.glob(File.join(File.dirname(@folder), "*")) - [@folder])
        files = files_below(@folder).sort_by { |_, stat| stat.mtime }
        bytes = files.sum { |_, stat| stat.size }
        files.each do |path, stat|
          break if bytes <= @most_bytes / 2

          FileUtils.rm_f(path)
          bytes -= stat.size
        end
      end

      # [path, File::Stat] of each.
      def files_below(folder)
        Dir.glob(File.join(folder, "**", "*"), File::FNM_DOTMATCH).filter_map do |path|
          stat = File.lstat(path)
          [path, stat] if stat.file?
        rescue SystemCallError
          nil # another process has removed it
        end
      end
    end
  end
end

if $PROGRAM_NAME == __FILE__
  Highball::BootCache::Writer.run(*ARGV) do |writer|
    writer.write(Highball::BootCache::Writer.paths($stdin.binmode.read.split("\0")))
  end
end
