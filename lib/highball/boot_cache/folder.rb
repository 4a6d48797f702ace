# frozen_string_literal: true

module Highball
  class BootCache
    # The folder of a user's cache: `highball/boot` in CACHE_DIRECTORY (systemd), in XDG_CACHE_HOME, or in `~/.cache`.
    # Who can write there chooses what code runs, so it and all folders above it have to be this user's, or root's.
    module Folder
      NAME = "highball/boot"
      WRITABLE_BY_OTHERS = 0o022

      module_function

      # Its real path. It is created if need be.
      def of(env = ENV)
        path = File.join(base(env), NAME)
        create(path)
        File.realpath(path).tap { |real| check(real, owners: [Process.euid]) }
      rescue SystemCallError => e
        raise Unusable, e.message
      end

      # The first of these that names a folder. CACHE_DIRECTORY may have several.
      def base(env)
        named = [env["CACHE_DIRECTORY"].to_s.split(":").first, env["XDG_CACHE_HOME"]]
        cache = named.find { |path| path.to_s.start_with?("/") } and return cache

        home = env["HOME"].to_s
        raise Unusable, "neither CACHE_DIRECTORY, XDG_CACHE_HOME nor HOME names a folder" unless home.start_with?("/")
        raise Unusable, "the home folder #{home} does not exist" unless File.directory?(home)

        File.join(home, ".cache")
      end

      def create(path)
        return if File.directory?(path)

        create(File.dirname(path))
        check(File.realpath(File.dirname(path))) # or root would leave folders in the home of another user
        Dir.mkdir(path, 0o700)
      rescue Errno::EEXIST
        nil # another process was faster
      end

      # A folder with the sticky bit lets others create files, and not replace these.
      def check(path, owners: [Process.euid, 0])
        stat = File.lstat(path)
        raise Unusable, "#{path} belongs to another user" unless owners.include?(stat.uid)
        raise Unusable, "others can write to #{path}" if (stat.mode & WRITABLE_BY_OTHERS).positive? && !stat.sticky?

        check(File.dirname(path)) unless path == "/"
      end
    end
  end
end
