# frozen_string_literal: true

require "json"
require "socket"

module Highball
  # Finds the hub of this application. Workers, and processes that they start, have its address in their environment.
  # Other processes ask the control sockets of this user's servers.
  module HubAddress
    VARIABLE = "HIGHBALL_HUB"
    CONTROL = "HIGHBALL_CONTROL"
    # Time for a server to answer, in seconds.
    TIME = 2
    ANSWER_BYTES = 1 << 20

    class << self
      # Returns the addresses to try, the most likely one first.
      def all
        Enumerator.new do |addresses|
          own = ENV.fetch(VARIABLE, nil)
          addresses << own if own
          control_sockets.each { |path| of_server(path)&.then { |address| addresses << address } }
        end
      end

      # Returns the folder of this application.
      def folder
        root = ::Rails.root if defined?(::Rails) && ::Rails.respond_to?(:root)
        (root || Dir.pwd).to_s
      end

      private

      # The newest server comes first.
      def control_sockets
        named = ENV.fetch(CONTROL, "")
        return [named] if File.socket?(named)

        folders = named.empty? ? usual_folders.select { |path| private?(path) } : [named]
        sockets = folders.flat_map { |path| Dir.glob("*.sock", base: path).map { |name| File.join(path, name) } }
        sockets.filter_map { |path| [File.mtime(path), path] if File.socket?(path) }.sort.reverse.map(&:last)
      rescue SystemCallError
        []
      end

      # As in crates/highball/src/control/places.rs.
      def usual_folders
        user = Process.euid
        shared = "/dev/shm/highball-#{user}"
        return ["/run/highball", shared] if user.zero?

        runtime = [ENV.fetch("XDG_RUNTIME_DIR", nil), "/run/user/#{user}"].compact.reject(&:empty?).uniq
        [*runtime.map { |path| File.join(path, "highball") }, *Dir["/run/*/highball"], "/tmp/highball-#{user}", shared]
      end

      # The owner of the folder decides what is answered there.
      def private?(path)
        found = File.lstat(path)
        found.directory? && found.owned? && found.mode.nobits?(0o077)
      rescue SystemCallError
        false
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
