# frozen_string_literal: true

require "io/wait"
require "rbconfig"
require_relative "ahead"
require_relative "writer"

module Highball
  class BootCache
    # A program: compiles Ruby files before a boot needs them, and puts them into the part of the cache that its first
    # argument names. With the lowest priority: it is for a CPU that has nothing else to do. It ends with the boot; its
    # second argument is the id of that process.
    #
    # Standard input names the files that the boot has compiled (Ahead). What it loads next is likely to be in the gem
    # that it has begun to load last; outside of gems, in the folder with the name of the last file (`mail` beside
    # `mail.rb`). Last comes the application itself, in the folder of the third argument.
    class AheadWriter
      FOLDERS_OF_APP = %w[config lib app].freeze
      # A gem's folder that has Ruby files: `gems/NAME-VERSION/lib`.
      FOLDER_OF_GEM = %r{\A/.*/gems/[^/]+/[^/]+(?=/)}
      RUBYS_LIBRARY = File.join(RbConfig::CONFIG.fetch("rubylibdir"), "")
      # How often it looks whether that process runs while there is nothing to do, in seconds.
      IDLE = 1
      # What it reads at once, in bytes: all that a pipe holds (pipe(7)).
      MOST_READ = 64 << 10

      def initialize(writer, boot, app)
        @writer = writer
        @boot = boot
        @rest = "".b
        @done = {} # paths that the boot or this process has compiled
        @folders = {}
        @next = [] # the paths of files, the next one last
        FOLDERS_OF_APP.each { |name| add_folder(File.join(app, name)) }
      end

      def run
        @writer.prepare
        while boot_goes_on?
          path = @next.pop
          compile(path) if path && !@done.key?(path)
        end
      end

      private

      def compile(path)
        @done[path] = true
        @writer.add(path) unless @writer.has?(path)
      end

      # Takes in what the boot has compiled meanwhile. Waits if there is nothing to do.
      def boot_goes_on?
        return false unless @writer.needed?

        @boot.wait_readable(IDLE) if @next.empty?
        case (bytes = @boot.read_nonblock(MOST_READ, exception: false))
        when nil then false
        when :wait_readable then true
        else take_in(bytes)
        end
      end

      def take_in(bytes)
        *paths, @rest = (@rest << bytes).split("\0", -1)
        Writer.paths(paths).each do |path|
          @done[path] = true
          add_folder(folder_for(path)) if path.valid_encoding?
        end
        !paths.include?(Ahead::END_MARK)
      end

      # Where the boot is likely to find the files that it loads after this one. Ruby's own library has more in such
      # folders than an application uses.
      def folder_for(path)
        path[FOLDER_OF_GEM] || (path.delete_suffix(".rb") unless path.start_with?(RUBYS_LIBRARY))
      end

      # Its files come next.
      def add_folder(folder)
        return if folder.nil? || @folders.key?(folder)

        @folders[folder] = true
        @next.concat(Dir.glob("**/*.rb", base: folder).reverse.map { |name| File.join(folder, name) })
      end
    end
  end
end

if $PROGRAM_NAME == __FILE__
  Highball::BootCache::Writer.run(*ARGV.first(2)) do |writer|
    Highball::BootCache::AheadWriter.new(writer, $stdin.binmode, ARGV.fetch(2)).run
  end
end
