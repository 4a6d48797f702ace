# frozen_string_literal: true

require_relative "native"
require_relative "text"

module Highball
  # The files that an application has sent by naming them in a header of its response: `X-Sendfile` (a path) or
  # `X-Accel-Redirect` (a URI below a prefix, or a path). They must lie in the folders of the option `sendfile`: the
  # values of headers may come from elsewhere, such as another server whose response the application passes on.
  class Sendfile
    HEADERS = { "x-sendfile" => :file_at, "x-accel-redirect" => :file_of_uri }.freeze
    # What every env has besides: an application that has set up `Rack::Sendfile` with `X-Accel-Redirect`, and without a
    # mapping, takes paths for URIs.
    ENV = { "HTTP_X_ACCEL_MAPPING" => "/=/" }.freeze
    # A part of a path that leads up. Where an application lets a client write one, it has made a mistake.
    UP = %r{(?:\A|/)\.\.(?:/|\z)}n

    # A header names no file that may be sent.
    class Refused < StandardError
    end

    # A folder; `prefix`: what URIs of its files begin with, or nil.
    Folder = Struct.new(:prefix, :path)

    # folders:: the option: Hashes with `:prefix` and `:folder`.
    # below:: where relative ones begin.
    def initialize(folders, below: Dir.pwd)
      @folders = folders.map { |given| Folder.new(given[:prefix]&.b, absolute(given[:folder], below)) }
      @paths = @folders.map(&:path)
    end

    # Whether a header of this name is for the server.
    def self.header?(name) = HEADERS.key?(name.downcase)

    # The open file that the header names.
    #
    # Raises Refused.
    def open(name, value)
      value = value.b
      send(HEADERS.fetch(name.downcase), value)
    rescue Refused => e
      raise Refused, "#{name} names #{value[0, 1000].inspect}: #{e.message}"
    end

    private

    def absolute(path, below) = (path.start_with?("/") ? path : File.join(below, path)).b

    def file_at(path, folders = @paths)
      raise Refused, "it is not an absolute path" unless path.start_with?("/")
      raise Refused, "it leads up by `..`" if path.match?(UP)

      opened = Native.open_within(path, folders)
      return opened unless opened.is_a?(String)

      # Paths are bytes, and the log is text.
      raise Refused, "#{opened}; it must lie in #{folders.map { |folder| Text.of(folder) }.join(' or ')}"
    end

    # The longest prefix counts. What has none is a path.
    def file_of_uri(uri)
      path = uri[/\A[^?#]*/n].gsub(/%\h\h/n) { |code| code[1, 2].hex.chr }
      folder = @folders.select { |one| below?(path, one.prefix) }.max_by { |one| one.prefix.length }
      return file_at(path) unless folder

      file_at(folder.path + path.delete_prefix(folder.prefix), [folder.path])
    end

    def below?(path, prefix) = prefix && path.start_with?("#{prefix}/")
  end
end
