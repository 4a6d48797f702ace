# frozen_string_literal: true

require "json"
require "socket"
require_relative "hub_files"
require_relative "private_folder"

module Highball
  # Finds the hub of this application. Workers, and processes that they start, have its address in their environment.
  # Other processes ask the control sockets of this user's servers, or find it in files of the workers.
  module HubAddress
    VARIABLE = "HIGHBALL_HUB"
    CONTROL = "HIGHBALL_CONTROL"
    # Time for a server to answer, in seconds.
    TIME = 2
    ANSWER_BYTES = 1 << 20

    class << self
      # Returns the addresses to try, the most likely one first. A server that takes over has its control socket before
      # the old one refuses connections: a process that was refused finds it in the next list.
      def all
        Enumerator.new do |addresses|
          own = ENV.fetch(VARIABLE, nil)
          addresses << own if own
          in_files.each { |address| addresses << address } unless ENV.key?(CONTROL)
          tried = []
          until (untried = control_sockets - tried).empty?
            tried += untried
            untried.each { |_, path| of_server(path)&.then { |address| addresses << address } }
          end
        end
      end

      # Notes the address at the server that has taken over: when the old one has ended, processes of other users than
      # the server's find it nowhere else.
      def moved(address)
        ENV[VARIABLE] = address if ENV.key?(VARIABLE)
      end

      # Returns the folder of this application.
      def folder
        root = ::Rails.root if defined?(::Rails) && ::Rails.respond_to?(:root)
        (root || Dir.pwd).to_s
      end

      private

      # Returns the addresses of this application that its workers have written.
      def in_files
        own = File.realpath(folder)
        HubFiles.read.filter_map { |app, address| address if same?(app, own) }
      end

      # Returns when each was made, and its path. The newest server comes first.
      def control_sockets
        named = ENV.fetch(CONTROL, "")
        folders = named.empty? ? usual_folders.select { |path| PrivateFolder.at?(path) } : [named]
        paths = folders.flat_map { |path| Dir.glob("*.sock", base: path).map { |name| File.join(path, name) } }
        [named, *paths].filter_map { |path| socket_with_time(path) }.sort.reverse
      end

      def socket_with_time(path)
        found = File.stat(path)
        [found.mtime, path] if found.socket?
      rescue SystemCallError
        nil # that server has ended
      end

      # As in crates/highball/src/control/places.rs.
      def usual_folders
        user = Process.euid
        shared = "/dev/shm/highball-#{user}"
        return ["/run/highball", shared] if user.zero?

        runtime = [ENV.fetch("XDG_RUNTIME_DIR", nil), "/run/user/#{user}"].compact.reject(&:empty?).uniq
        [*runtime.map { |path| File.join(path, "highball") }, *Dir["/run/*/highball"], "/tmp/highball-#{user}", shared]
      end

      # Returns the address for this application, if the server at this control socket serves it.
      def of_server(path)
        apps = JSON.parse(ask(path)).fetch("apps", [])
        own = File.realpath(folder)
        apps.find { |app| same?(app["folder"], own) }&.fetch("address")
      rescue SystemCallError, IOError, JSON::ParserError
        nil # it has ended, or is of another version
      end

      def same?(path, own)
        File.realpath(path) == own
      rescue SystemCallError
        false
      end

      def ask(path)
        UNIXSocket.open(path) do |socket|
          socket.write("{\"command\":\"hub\"}\n")
          answer = "".b
          ends_at = Process.clock_gettime(Process::CLOCK_MONOTONIC) + TIME
          while answer.bytesize < ANSWER_BYTES && (piece = next_piece(socket, ends_at))
            answer << piece
          end
          answer.force_encoding(Encoding::UTF_8)
        end
      end

      def next_piece(socket, ends_at)
        left = ends_at - Process.clock_gettime(Process::CLOCK_MONOTONIC)
        raise IOError, "no answer" unless left.positive? && socket.wait_readable(left)

        socket.readpartial(64 * 1024)
      rescue EOFError
        nil
      end
    end
  end
end
