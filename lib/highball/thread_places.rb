# frozen_string_literal: true

require_relative "database_pools"

module Highball
  # Adds threads to a worker that may have more of them. The ring finds out when one more would help: requests queue,
  # and all threads wait for something else than the GVL. This class asks whether the application's connection pools
  # have room for one more, as each thread may need a connection.
  class ThreadPlaces
    # What keeps the number from growing (PROTOCOL.md of the ring, Places).
    NOTHING = 0
    POOL = 2
    POOL_WAIT = 3
    SYSTEM = 4

    # Connections of each pool that are for no serving thread: an application may have other threads, and a request may
    # need a second connection.
    SPARE = 2

    # The largest number of connections, nil for no limit, and the number of threads that wait for one.
    Pool = Struct.new(:name, :most, :waiting, keyword_init: true)

    def initialize(ring, log)
      @ring = ring
      @log = log
      @logged = []
      @mutex = Mutex.new
    end

    # Adds a place, and has the block start its thread, if nothing is in the way. Safe for several threads.
    def add
      @mutex.synchronize do
        next unless @ring.places < @ring.most_threads

        kept_by = obstacle
        @ring.keep_places(kept_by)
        next unless kept_by == NOTHING

        yield unless @ring.take_place_back
        @ring.add_place
      end
    rescue ThreadError => e
      @ring.keep_places(SYSTEM)
      log_once(:thread_refused, e.message)
    end

    private

    def obstacle
      pools = active_record + sequel
      # More threads would wait for a connection, too. That is no wait for the database.
      return POOL_WAIT if pools.any? { |pool| pool.waiting.positive? }

      small = pools.find { |pool| pool.most && pool.most - SPARE <= @ring.places } or return NOTHING
      log_once(:pool_too_small,
               "#{small.name}: #{small.most}, of which #{SPARE} are for other threads of the application")
      POOL
    rescue StandardError => e # a pool of another release of its library
      log_once(:pool_unreadable, e.message)
      POOL
    end

    def active_record
      DatabasePools.all.map do |pool|
        Pool.new(name: "database", most: pool.size, waiting: pool.num_waiting_in_queue)
      end
    end

    def sequel
      return [] unless defined?(::Sequel::DATABASES)

      ::Sequel::DATABASES.map { |database| Pool.new(name: "Sequel", most: database.pool.max_size, waiting: 0) }
    end

    # Once: a pool does not grow.
    def log_once(event, why)
      return if @logged.include?(event)

      @logged << event
      @log.info(event, why: why)
    end
  end
end
