# frozen_string_literal: true

module Highball
  # Fibers that wait for events of descriptors. Several may wait for the same one.
  class DescriptorWaits
    # A fiber that waits for events of an IO, and the events that have come: bits of IO::READABLE and its like.
    Wait = Struct.new(:fiber, :io, :events, :come)

    def initialize(selector)
      @selector = selector
      @waits = {} # by descriptor
    end

    def empty? = @waits.empty?

    # Returns false if the IO is always ready, as files are.
    def watch(wait)
      descriptor = wait.io.fileno
      waits = (@waits[descriptor] ||= [])
      waits << wait
      is_watched = @selector.watch(descriptor, events_of(waits))
    ensure
      remove(descriptor, wait) unless is_watched
    end

    def forget(wait)
      descriptor = wait.io.closed? ? find(wait) : wait.io.fileno
      remove(descriptor, wait)
    end

    # Events of a descriptor have come, and it is not watched now. Yields each fiber that has waited for one of them.
    def note(descriptor, come)
      waits = @waits[descriptor] or return
      waits.each do |wait|
        wait.come |= come & wait.events
        yield wait.fiber unless wait.come.zero?
      end
      left = waits.select { |wait| wait.come.zero? && !wait.io.closed? }
      @selector.watch(descriptor, events_of(left)) unless left.empty?
    end

    # Yields each fiber whose IO is closed: epoll forgets it, and no event will come.
    def each_closed
      @waits.each_value do |waits|
        waits.each { |wait| yield wait.fiber if wait.io.closed? && wait.come.zero? }
      end
    end

    private

    def events_of(waits) = waits.inject(0) { |events, wait| events | wait.events }

    # A closed IO does not tell its descriptor.
    def find(wait) = @waits.find { |_, waits| waits.any? { |one| one.equal?(wait) } }&.first

    def remove(descriptor, wait)
      waits = @waits[descriptor] or return
      waits.delete_if { |one| one.equal?(wait) }
      @waits.delete(descriptor) if waits.empty?
    end
  end
end
