# frozen_string_literal: true

module Bench
  # Measurements as tables: medians for the terminal, everything for the file.
  class Report
    Figure = Struct.new(:heading, :digits, :of)

    CPU = Figure.new("CPU µs", 1, :cpu_us.to_proc)
    RATE = Figure.new("requests/s", 0, ->(one) { one.load.rate })
    P99 = Figure.new("p99 ms", 2, ->(one) { one.load.p99_ms })
    DISTURBANCE = [
      Figure.new("others %", 1, :others_percent.to_proc), Figure.new("stolen %", 1, :steal_percent.to_proc)
    ].freeze
    LOAD = [
      CPU, Figure.new("user", 1, :user_us.to_proc), Figure.new("system", 1, :system_us.to_proc),
      RATE, Figure.new("p50 ms", 2, ->(one) { one.load.p50_ms }), P99
    ].freeze
    REST = [
      Figure.new("private dirty MiB", 1, ->(one) { one.memory.private_dirty }),
      Figure.new("PSS MiB", 1, ->(one) { one.memory.pss }),
      Figure.new("rings MiB", 2, ->(one) { one.memory.ring }),
      Figure.new("context switches", 3, :context_switches.to_proc), *DISTURBANCE
    ].freeze

    RATIOS = [CPU, RATE, P99].freeze

    # `system_calls`: [scheme, connections, SystemCalls] each.
    def initialize(measurements, system_calls)
      @measurements = measurements
      @groups = measurements.group_by { |one| [one.connections, one.scheme] }
      @system_calls = system_calls
    end

    # Title => table. `range`: whether smallest and largest values stand behind the medians.
    def tables(range:)
      {
        "Per request" => medians(LOAD, range),
        "Highball against the others" => ratios(range),
        "Memory and context switches" => medians(REST, range),
        "System calls per request" => system_calls
      }.compact
    end

    # Each measurement, in the order taken.
    def measurements
      figures = [*LOAD, *DISTURBANCE]
      rows = @measurements.map do |one|
        [one.round, one.connections, name([one]), one.load.requests,
         *figures.map { |figure| round(figure.of[one], figure.digits) }, errors([one])]
      end
      table(["round", "connections", "scheme", "requests", *figures.map(&:heading), "errors"], rows)
    end

    private

    def medians(figures, range)
      rows = @groups.map do |(connections, _), group|
        [connections, name(group),
         *figures.map { |figure| spread(group.map(&figure.of), figure.digits, range) }, errors(group)]
      end
      table(["connections", "scheme", *figures.map(&:heading), "errors"], rows)
    end

    # Highball's figures divided by each other scheme's, round by round.
    def ratios(range)
      rows = @groups.filter_map do |(connections, _), group|
        highball = @groups[[connections, SCHEMES["highball"]]]
        next if highball.nil? || highball.equal?(group)

        cells = RATIOS.map do |figure|
          spread(highball.zip(group).map { |pair| pair.map(&figure.of).reduce(:fdiv) }, 3, range)
        end
        [connections, "#{name(highball)} / #{name(group)}", *cells]
      end
      table(["connections", "ratio", *RATIOS.map(&:heading)], rows)
    end

    def system_calls
      rows = @system_calls.map do |scheme, connections, calls|
        [connections, scheme.title, round(calls.total, 2), calls]
      end
      table(%w[connections scheme calls which], rows)
    end

    # Median (smallest–largest).
    def spread(values, digits, range)
      sorted = values.sort
      median = sorted.values_at((sorted.size - 1) / 2, sorted.size / 2).sum / 2.0
      return round(median, digits) unless range

      "#{round(median, digits)} (#{round(sorted.first, digits)}–#{round(sorted.last, digits)})"
    end

    def round(value, digits) = format("%.#{digits}f", value)

    # Marked when there were errors.
    def name(group) = "#{group.first.scheme.title}#{' !' if group.any?(&:errors?)}"

    # The sum over the rounds: an error is never averaged away.
    def errors(group)
      sums = {}.merge(*group.map { |one| one.load.errors }) { |_, one, other| one + other }
      sums.empty? ? "0" : sums.map { |kind, count| "#{kind} #{count}" }.join(", ")
    end

    # Markdown, padded so that it reads well as it stands; nil without rows.
    def table(head, rows)
      return if rows.empty?

      rows = rows.map { |row| row.map(&:to_s) }
      widths = [head, *rows].transpose.map { |cells| cells.map(&:length).max }
      lines = [head, widths.map { |width| "-" * width }, *rows].map do |cells|
        cells.zip(widths).map { |cell, width| cell.ljust(width) }.join(" | ")
      end
      lines.map { |line| "| #{line} |\n" }.join
    end
  end
end
