# frozen_string_literal: true

require "set"

module Highball
  # The names in a Rails application's public folder, by which its middleware for static files knows at once that a
  # request is for none.
  #
  # ActionDispatch::Static asks the file system about several files for each request: that is a quarter of the time of a
  # small action. The answer is nearly always that there is no such file, as `highball` has served existing files. So
  # the names in the folder are kept as long as the folder is unchanged, and a request whose path begins with no such
  # name passes on. All others take the way that Rails has for them.
  class PublicNames
    # For ActionDispatch::Static.
    module Passing
      def call(env)
        @public_names ||= PublicNames.of(@file_handler)
        @public_names.lack?(env["PATH_INFO"]) ? @app.call(env) : super
      end
    end

    # The most names that are kept.
    MOST = 4096
    # A folder that has changed more recently than this may change again with the same time, in seconds.
    SETTLED = 2
    # Paths that Rails decodes, or that lead up or to hidden files.
    UNCLEAR = %r{[%\\]|/\.|//}
    # The names in a folder, and by what it is recognised as unchanged since they were read.
    Look = Struct.new(:stamp, :names)

    class << self
      # To be called when the application has been loaded. A middleware that somebody has changed is left alone.
      def install
        return unless defined?(::ActionDispatch::Static) && stock?

        ::ActionDispatch::Static.prepend(Passing)
      end

      def of(file_handler)
        root, index = %i[@root @index].map { |name| file_handler.instance_variable_get(name) }
        new(root, index)
      end

      private

      def stock?
        gem = Gem.loaded_specs["actionpack"]&.full_gem_path
        static = ::ActionDispatch::Static # Rails loads both by its name
        handler = ::ActionDispatch::FileHandler
        methods = [static.instance_method(:call), handler.instance_method(:attempt)]
        gem && methods.all? { |method| method.source_location&.first&.start_with?(gem) } &&
          [static, handler].all? { |owner| owner.ancestors.first == owner }
      end
    end

    # root:: the folder. index:: the name of a folder's page, without its ending.
    def initialize(root, index)
      @root = root
      @index = index
    end

    # Whether the folder has no file for this path. False where that is not known.
    def lack?(path)
      return false if path.nil? || !path.start_with?("/") || !path.ascii_only? || UNCLEAR.match?(path)

      names = names_now or return false
      return !names.include?(@index) && !names.include?("") if path == "/"

      first = path[1, (path.index("/", 1) || path.length) - 1]
      !names.include?(first)
    end

    private

    # What names in the folder begin with, up to each dot (`a.css.gz`: a, a.css and a.css.gz); nil if they are unknown.
    def names_now
      stat = File.stat(@root)
      look = @look
      return look.names if look && look.stamp == stamp(stat)
      return if Time.now - stat.mtime < SETTLED

      names = Dir.children(@root, encoding: Encoding::BINARY)
      return if names.length > MOST || stamp(File.stat(@root)) != stamp(stat)

      @look = Look.new(stamp(stat), names.flat_map { |name| beginnings(name) }.to_set)
      @look.names
    rescue SystemCallError
      nil
    end

    def stamp(stat) = [stat.dev, stat.ino, stat.mtime, stat.ctime]

    def beginnings(name)
      dots = (0...name.length).select { |at| name[at] == "." }
      [*dots.map { |at| name[0, at] }, name]
    end
  end
end
