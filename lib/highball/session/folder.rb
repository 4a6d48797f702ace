# frozen_string_literal: true

require "digest"
require "fileutils"
require_relative "../pstore"

module Highball
  module Session
    # What a session store reports: a folder that others can read, a session that is too large.
    class Error < StandardError; end

    # The sessions of an application as files, each in the format of PStore. They are divided over 256 folders.
    #
    # A file's name is a hash of the session's id, so that neither can an id be read from the folder, nor a path be
    # made of an id. Changes of the same session are made one after the other: each sets and removes the keys that its
    # request has changed. If they need not be durable, a small file is written in place, which takes a tenth of the
    # time that replacing it takes.
    class Folder
      SHARDS = 256
      LONGEST_ID_BYTES = 512
      NAME = /\A\h{64}\z/
      LEFT_OVER = /\A\h{64}\.new[.\d]*\z/
      LEFT_OVER_SECONDS = 3600
      READ = File::RDONLY | File::NOFOLLOW | File::NONBLOCK
      CREATE = File::WRONLY | File::CREAT | File::EXCL | File::NOFOLLOW
      # Sessions that are removed before other threads have a turn.
      AT_A_TIME = 32
      # A process that is killed has written all of a page, or nothing. (If the session has become shorter, the end of
      # the old one may be left behind it, which Marshal ignores.)
      PAGE_BYTES = 4096
      # A session is over at the end of its lifetime. Its file is removed this much later, when all requests that have
      # read it have ended.
      LATE_SECONDS = 600
      private_constant :PAGE_BYTES, :AT_A_TIME, :LATE_SECONDS, :NAME, :LEFT_OVER, :LEFT_OVER_SECONDS
      private_constant :READ, :CREATE

      # The file of a session as it was read. `bytes` has the values.
      Loaded = Struct.new(:bytes, :written_at) do
        # Another copy each time. (The first is the checked one.)
        def values
          parsed = @parsed
          @parsed = nil
          parsed || parse
        end

        # Whether it is a hash, all of which is there. After a power failure it may not be. (Rails loads classes that
        # are missing.)
        def whole?
          (@parsed = parse).is_a?(Hash)
        rescue ArgumentError, TypeError, EOFError => e
          e.message.include?("undefined class/module")
        end

        private

        def parse = Marshal.load(bytes) # rubocop:disable Security/MarshalLoad
      end

      # A file that a sweep finds.
      Found = Struct.new(:path, :bytes, :time)
      private_constant :Found

      # lifetime::   Seconds after which a session ends that is not used.
      # most::       Sessions; when there are more, the least recently used end.
      # most_bytes:: Bytes of all sessions; the same.
      # most_bytes_each:: Bytes of a session; a larger one raises an Error.
      # durable::    As of PStore.
      def initialize(path, lifetime:, most:, most_bytes:, most_bytes_each:, durable:)
        @path = File.expand_path(path)
        @lifetime = lifetime
        @most = most
        @most_bytes = most_bytes
        @most_bytes_each = most_bytes_each
        @durable = durable
        FileUtils.mkdir_p(File.dirname(@path))
        make_own(@path)
      end

      attr_reader :path, :most

      # The session of this id, or nil if there is none, or its time is over.
      def read(id)
        path = path_of(id) or return
        File.open(path, READ) do |file|
          file.flock(File::LOCK_SH)
          stat = file.stat
          loaded = Loaded.new(file.binmode.read, stat.mtime) if own?(stat) && !over?(stat.mtime)
          loaded if loaded&.whole?
        end
      rescue Errno::ENOENT, Errno::ELOOP, Errno::EACCES
        nil
      end

      # Adds a session. (No client knows its id yet, so a file that is half written when the process dies has no
      # reader.)
      def create(id, values)
        bytes = dump(values)
        path = path_of(id)
        make_own(File.dirname(path))
        File.open(path, CREATE, 0o600) { |file| file.binmode.write(bytes) && @durable && file.fsync }
        File.open(File.dirname(path), &:fsync) if @durable
        true
      rescue Errno::EEXIST
        false
      end

      # Writes what has changed since the session was loaded. Returns false if the session has ended meanwhile: then
      # it is not made again, because its user may have logged out.
      def update(id, loaded, values)
        new = dump(values)
        return used(id, loaded) if new == loaded.bytes

        locked(path_of(id)) do |file|
          now = file.read
          new = dump(merge(now, loaded.values, values)) if now != loaded.bytes # another request has changed it
          file.replace(new, in_place: in_place?(now, new)) if new != now
          true
        end
      end

      # Ends a session.
      def delete(id)
        path = path_of(id) or return
        locked(path) { File.unlink(path) }
      end

      # Ends the sessions of a shard whose time is over, and the oldest ones if there are too many. Returns their
      # number.
      def sweep(shard)
        over, files = files_in(File.join(@path, format("%02x", shard))).partition do |file|
          over?(file.time, LATE_SECONDS)
        end
        over.each_slice(AT_A_TIME) { |late| unlink(late.map(&:path)) }
        over.length + end_oldest(files.sort_by(&:time))
      end

      private

      def over?(time, late = 0) = Time.now - time > @lifetime + late
      def own?(stat) = stat.file? && stat.uid == Process.euid && stat.size <= @most_bytes_each
      def share(limit) = (limit.to_f / SHARDS).ceil

      def path_of(id)
        return if id.nil? || id.bytesize > LONGEST_ID_BYTES

        name = Digest::SHA256.hexdigest(id)
        File.join(@path, name[0, 2], name)
      end

      def make_own(folder)
        Dir.mkdir(folder, 0o700)
      rescue Errno::EEXIST
        stat = File.lstat(folder)
        return if stat.directory? && stat.uid == Process.euid && (stat.mode & 0o077).zero?

        raise Error, "the sessions' folder #{folder} must be a folder of this user that others cannot read: " \
                     "chmod 700, chown #{Process.euid}"
      end

      def dump(values)
        bytes = Marshal.dump(values)
        return bytes if bytes.bytesize <= @most_bytes_each

        raise Error,
              "the session has #{bytes.bytesize} bytes of at most #{@most_bytes_each}: keep large objects elsewhere"
      end

      def in_place?(*states) = !@durable && states.all? { |bytes| bytes.bytesize <= PAGE_BYTES }

      # Renews the time of a session, but not at each request.
      def used(id, loaded)
        return true if Time.now - loaded.written_at < @lifetime / 20.0

        path = path_of(id)
        locked(path) do
          now = Time.now
          File.lutime(now, now, path)
          true
        end
      end

      # Runs the block while no other process changes the file. False if there is none.
      def locked(path)
        file = Highball::PStore::StoreFile.new(path, durable: @durable, create: false, follow: false)
        file.lock(true) && yield(file)
      rescue Errno::ELOOP
        false
      ensure
        file.release
      end

      # now:: bytes
      def merge(now, before, values)
        now = Marshal.load(now) # rubocop:disable Security/MarshalLoad
        removed = before.keys - values.keys
        changed = values.reject { |key, value| before.key?(key) && Marshal.dump(before[key]) == Marshal.dump(value) }
        now.except(*removed).merge(changed)
      end

      # The sessions of a folder. Other files are left alone.
      def files_in(folder)
        Dir.children(folder).filter_map do |name|
          path = File.join(folder, name)
          stat = File.lstat(path)
          next unless stat.file?

          File.unlink(path) if name.match?(LEFT_OVER) && Time.now - stat.mtime > LEFT_OVER_SECONDS
          Found.new(path, stat.size, stat.mtime) if name.match?(NAME)
        rescue Errno::ENOENT
          nil
        end
      rescue Errno::ENOENT
        []
      end

      # Removes files without a lock: no request can have them any longer. Ruby lets other threads run meanwhile.
      def unlink(paths)
        File.unlink(*paths)
      rescue Errno::ENOENT
        FileUtils.rm_f(paths)
      end

      # Returns how many have ended.
      def end_oldest(files)
        count = files.length
        bytes = files.sum(&:bytes)
        files.each_slice(AT_A_TIME).sum do |some|
          Thread.pass
          some.count do |file|
            next if (count <= share(@most) && bytes <= share(@most_bytes)) || !end_session(file)

            count -= 1
            bytes -= file.bytes
          end
        end
      end

      # Unless it has been used since it was looked at.
      def end_session(found)
        locked(found.path) { |file| file.written_at == found.time && File.unlink(found.path) }
      end
    end
  end
end
