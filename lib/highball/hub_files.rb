# frozen_string_literal: true

require "json"
require_relative "private_folder"

module Highball
  # Files with the addresses of hubs, where the server belongs to another user than the application: processes that
  # Highball has not started can't ask its control socket. Workers write them, one for each application, and read none.
  module HubFiles
    # Longest name of a file, without its ending: the end of the application's path in hexadecimal.
    NAME_DIGITS = 200

    class << self
      # Writes the address of the application in this folder. A file that is read meanwhile is whole.
      def write(address, app)
        folder = own_folder
        digits = app.unpack1("H*")
        path = File.join(folder, "#{digits[-NAME_DIGITS..] || digits}.hub")
        temporary = "#{path}.#{Process.pid}"
        File.write(temporary, JSON.generate(folder: app, address: address), perm: 0o600)
        File.rename(temporary, path)
        forget_others(folder)
      end

      # Returns what the files have, the newest first: the folder of the application, and the address.
      def read
        private_folders = folders.select { |path| PrivateFolder.at?(path) }
        found = private_folders.flat_map { |folder| paths(folder) }.filter_map { |path| entry(path) }
        found.sort_by(&:first).reverse.map { |_, app, address| [app, address] }
      end

      private

      def folders
        user = Process.euid
        runtime = "/run/user/#{user}"
        [*("#{runtime}/highball-hub" if File.directory?(runtime)), "/dev/shm/highball-hub-#{user}",
         "/tmp/highball-hub-#{user}"]
      end

      def paths(folder) = Dir.glob("*.hub", base: folder).map { |name| File.join(folder, name) }

      # Removes files of applications that are gone.
      def forget_others(folder)
        paths(folder).each do |path|
          _, app, = entry(path)
          File.delete(path) if app && !File.exist?(app)
        end
      end

      def entry(path)
        found = JSON.parse(File.read(path))
        [File.mtime(path), found.fetch("folder"), found.fetch("address")]
      rescue SystemCallError, JSON::ParserError, KeyError
        nil # it is gone, or of another version
      end

      # Returns the first private folder of this user that is there, or can be made.
      def own_folder
        folders.find { |folder| make(folder) } or
          raise Errno::EACCES, "#{folders.join(', ')}: no folder of user #{Process.euid} alone"
      end

      # Makes the folder, unless it is there. Returns whether it is private.
      def make(folder)
        begin
          Dir.mkdir(folder, 0o700)
        rescue SystemCallError
          nil # it is there, or cannot be made
        end
        PrivateFolder.at?(folder)
      end
    end
  end
end
