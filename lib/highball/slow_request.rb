# frozen_string_literal: true

require_relative "app"
require_relative "calls"
require_relative "text"

module Highball
  # A request that goes on for long, and where its time goes. It is made of samples: the time since the last one counts
  # for the call of the application that a sample finds, and for what its thread did meanwhile.
  class SlowRequest
    # What a thread does: PROTOCOL.md of the supervisor.
    COMPUTING = "computing"
    WAITING = "waiting"
    WAITING_FOR_GVL = "gvl"
    COLLECTING = "gc"

    # Calls that are kept apart (the time of others is only summed up), and calls that are reported.
    MOST_CALLS = 40
    REPORTED = 5
    # Part of a request's time that may have passed since the last sample.
    LAST_PART = 4
    # Lines, and calls below, that are counted of each.
    MOST_DETAILS = 8
    # Innermost calls that are looked at first, and where none of them is the application's.
    FIRST = 40
    MOST = 400
    LABEL_BYTES = 200
    PATH_BYTES = 300
    # "block (2 levels) in show"
    INSIDE = /\A(?:(?:block|rescue|ensure)(?: \(\d+ levels?\))? in )+/

    # The clocks at a sample, in seconds: the time, the CPU time of the thread, of the process, and of its garbage
    # collection, and how long the thread has waited for a CPU.
    Clocks = Struct.new(:now, :thread, :process, :gc, :delayed)

    # A call of the application's, and what its thread did: seconds, in all and by line and by the call below.
    Share = Struct.new(:seconds, :lines, :below)

    attr_reader :ticket, :line, :began, :samples

    # line:: method and path
    # began:: when it began, in seconds of CLOCK_MONOTONIC
    # clocks:: Clocks since which its thread is watched; nil: not before its first sample
    def initialize(ticket, line, began, clocks = nil)
      @ticket = ticket
      @line = line
      @began = began
      @last = clocks
      @samples = 0
      @shares = {}
      @others = 0.0
    end

    # Counts the time since the last sample.
    #
    # locations:: the calls of its thread or fiber, innermost first: a callable that takes where to begin, and how many
    # clocks:: Clocks of this moment
    # runs:: whether the thread would compute, and perhaps waits until others let it
    # has_cpu:: whether the CPU time of the thread is that of this request
    def sample(locations, clocks, runs:, has_cpu: true)
      call = CallOfApplication.find(locations)
      @samples += 1
      # Before the thread was watched, all that is known is what it does now.
      add(call, runs ? COMPUTING : WAITING, (@last || clocks).now - @began) if @samples == 1
      divide(clocks, runs, has_cpu).each { |what, seconds| add(call, what, seconds) } if @last
      @last = clocks
      @waits_in = (call unless runs)
    end

    # It ended at this time. A thread that waited at the last sample has waited until then, if that is not long. What a
    # thread computed since is not known.
    def end_at(time)
      @ended = time
      rest = time - @last.now if @waits_in
      add(@waits_in, WAITING, rest) if rest && rest < seconds / LAST_PART
    end

    def ended? = !@ended.nil?

    # How long it has taken.
    def seconds(now = @ended) = (@ended || now) - @began

    # The fields of the message `slow`.
    def report(now)
      shown = @shares.sort_by { |_, share| -share.seconds }.first(REPORTED)
      parts = shown.map { |(file, label, what), share| part(file, label, what, share) }
      { ticket: @ticket, request: Text.cut(@line, PATH_BYTES), ms: ms(seconds(now)), ended: ended?, samples: @samples,
        parts: parts, other_ms: [ms(seconds(now)) - parts.sum { |part| part[:ms] }, 0].max }
    end

    private

    # What the thread did since the last sample: [what, seconds]…
    def divide(clocks, runs, has_cpu)
      passed = clocks.now - @last.now
      cpu = has_cpu ? (clocks.thread - @last.thread).clamp(0, passed) : 0
      delayed = has_cpu ? (clocks.delayed - @last.delayed).clamp(0, passed - cpu) : 0
      process = [clocks.process - @last.process, cpu].max
      # All threads stand still while one collects garbage; its time is divided as the CPU time is.
      gc = process.positive? ? ((clocks.gc - @last.gc) * cpu / process).clamp(0, cpu) : 0
      # While they had the GVL, threads waited for a CPU as long as this one did for each second of CPU time.
      stretch = cpu.positive? ? 1 + (delayed / cpu) : 1
      rest = passed - cpu - delayed
      gvl = runs ? [rest, (process - cpu) * stretch].min : 0
      [[COMPUTING, (cpu - gc) * stretch], [COLLECTING, gc * stretch], [WAITING_FOR_GVL, gvl], [WAITING, rest - gvl]]
    end

    def add(call, what, seconds)
      return unless seconds.positive?

      key = [call.file, call.label, what]
      share = @shares[key] || (@shares[key] = Share.new(0.0, {}, {}) if @shares.length < MOST_CALLS)
      return @others += seconds unless share

      share.seconds += seconds
      count(share.lines, call.line, seconds)
      count(share.below, call.below, seconds)
    end

    def count(details, detail, seconds)
      return unless details.key?(detail) || details.length < MOST_DETAILS

      details[detail] = details.fetch(detail, 0) + seconds
    end

    def part(file, label, what, share)
      below = share.below.max_by(&:last)&.first
      { ms: ms(share.seconds), what: what, file: file, line: share.lines.max_by(&:last)&.first || 0, label: label,
        below: below }
    end

    def ms(seconds) = (seconds * 1000).round

    # The innermost call that is the application's own, else the innermost of all; and the innermost call below it.
    class CallOfApplication
      attr_reader :file, :line, :label, :below

      def self.find(locations)
        first = (locations.call(0, FIRST) || []).to_a
        found = new(first)
        return found if found.own? || first.length < FIRST

        all = new(first + (locations.call(FIRST, MOST) || []).to_a)
        all.own? ? all : found
      end

      def initialize(locations)
        places = locations.each_cons(2).map { |place, outer| [place, native?(place, outer)] }
        places << [locations.last, false] unless locations.empty?
        places.reject! { |place, native| !native && Calls::NOISE.match?(place.path.to_s) }
        at = places.index { |place, native| !native && own_path?(path_of(place)) }
        @own = !at.nil?
        describe(places, at || places.index { |_, native| !native } || 0)
      end

      def own? = @own

      private

      def describe(places, at)
        place, = places[at]
        @file = ""
        @line = 0
        @label = "(nothing of Ruby)"
        return unless place

        @file = Text.cut(shown(path_of(place)), PATH_BYTES)
        @line = place.lineno.to_i
        @label = label_of(place)
        @below = label_of(places.first.first) if at.positive?
      end

      def label_of(place) = Text.cut(Text.of(place.label).sub(INSIDE, ""), LABEL_BYTES)

      # Native methods have the place of their caller.
      def native?(place, outer)
        place.lineno == outer.lineno && place.path == outer.path && place.label != outer.label &&
          !place.label.to_s.include?(" ")
      end

      def path_of(place)
        path = Text.of(place.path)
        path.start_with?("/") ? path : Text.of(place.absolute_path || path)
      end

      def own_path?(path)
        path.start_with?("#{App::FOLDER}/") && !path.start_with?("#{App::FOLDER}/vendor/")
      end

      def shown(path)
        return path.delete_prefix("#{App::FOLDER}/") if own_path?(path)

        path[%r{\A.*/gems/([^/]+/.+)\z}, 1] || path
      end
    end
    private_constant :CallOfApplication
  end
end
