# frozen_string_literal: true

module Highball
  # An open file that is the whole body of a response. The front sends the client what it asks for of it.
  class SentFile
    DESCRIBED = /\A(?:content-length|transfer-encoding)\z/i

    # The file at a path that a body has, or nil: it is no regular file with a size (files in /proc have none), or it
    # cannot be opened.
    def self.at(path)
      file = File.open(path, File::RDONLY | File::NONBLOCK | File::BINARY) # a pipe would wait for its writer
      return new(file) if file.stat.file? && file.size.positive?

      file.close
      nil
    rescue SystemCallError
      nil
    end

    attr_reader :size

    def initialize(file)
      @file = file
      @stat = file.stat
      @size = @stat.size
    end

    def fileno = @file.fileno
    def close = @file.close

    # These headers, and what the client is to know about the file, unless they say it.
    def describe(headers)
      names = headers.keys.map(&:downcase)
      headers["content-length"] = @size.to_s unless names.include?("content-length")
      headers["etag"] = etag unless names.include?("etag")
      headers["last-modified"] = last_modified unless names.include?("last-modified")
      headers
    end

    # Whether the headers announce the file's length, or none.
    def whole_under?(headers)
      headers.all? { |name, value| !name.match?(DESCRIBED) || value == @size.to_s }
    end

    private

    # As a static file's.
    def etag
      modified = @stat.mtime
      format('"%<seconds>x-%<nanoseconds>x-%<bytes>x-%<inode>x"',
             seconds: modified.to_i, nanoseconds: modified.nsec, bytes: @size, inode: @stat.ino)
    end

    # Never later than now (RFC 9110 section 8.8.2.1).
    def last_modified = [@stat.mtime, Time.now].min.utc.strftime("%a, %d %b %Y %H:%M:%S GMT")
  end
end
