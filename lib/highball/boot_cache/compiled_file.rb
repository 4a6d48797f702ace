# frozen_string_literal: true

module Highball
  class BootCache
    # What the cache has of one Ruby file: its instruction sequence, and by what the file is recognised again.
    #
    # A header of 64 bytes, little-endian, and the bytes of RubyVM::InstructionSequence#to_binary:
    #
    # 0::  the format's name, 8 bytes
    # 8::  of the Ruby file: device, inode, size in bytes, times of the last change of its content and of its inode in
    #      nanoseconds; 8 bytes each. A file that is copied, or unpacked from an archive that sets its times, has
    #      another inode or another last time.
    # 48:: number of the bytes that follow; 8 bytes
    # 56:: the sum of these bytes; 8 bytes. A machine that fails may leave a file with zeros.
    module CompiledFile
      FORMAT = "HBISEQ1\n"
      OF_FILE = "a8Q<Q<Q<q<q<"
      OF_BINARY = "Q<Q<"
      OF_BINARY_AT = 48
      HEADER_BYTES = 64
      SUM_BITS = 64
      NANOSECONDS = 1_000_000_000

      module_function

      # Where in this part of the cache a Ruby file is; nil if its path leads elsewhere (`/a/../b.rb`).
      def place(folder, path) = (folder + path if path.start_with?("/") && File.expand_path(path) == path)

      # What identifies a file's content.
      def identity(stat)
        [stat.dev, stat.ino, stat.size, nanoseconds(stat.mtime), nanoseconds(stat.ctime)]
      end

      # The file of the cache for a Ruby file of this identity.
      def encode(identity, binary)
        beginning(identity) << [binary.bytesize, binary.sum(SUM_BITS)].pack(OF_BINARY) << binary
      end

      # What the file of the cache begins with.
      def beginning(identity) = [FORMAT, *identity].pack(OF_FILE)

      # The instruction sequence as bytes; nil if it is of another content, or damaged.
      def decode(bytes, identity)
        return unless bytes.bytesize >= HEADER_BYTES && bytes.start_with?(beginning(identity))

        length, sum = bytes.unpack(OF_BINARY, offset: OF_BINARY_AT)
        binary = bytes.byteslice(HEADER_BYTES..)
        binary if binary.bytesize == length && binary.sum(SUM_BITS) == sum
      end

      def nanoseconds(time) = (time.to_i * NANOSECONDS) + time.nsec
    end
  end
end
