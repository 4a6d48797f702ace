#!/usr/bin/env ruby
# frozen_string_literal: true

# Draws the chart of the README, bench/chart.svg, from what was measured and published: requests per second, p99 and
# memory of Redmine in ORIGINS.md (`highball bench origins`), and the slowest answer in restarts with the number of
# requests that failed in restarts.json (`ruby bench/restarts.rb`):
#
#     ruby bench/chart.rb

require "cgi"
require "json"

# The figures of the servers, by panel.
module Measured
  FOLDER = __dir__
  APPLICATION = "redmine"
  SERVERS = { "Puma" => "Puma", "Passenger" => "Passenger", "nginx → Unicorn" => "Unicorn",
              "Highball" => "Highball" }.freeze

  module_function

  # { "Requests per second" => { "Puma" => "46.5", … }, … }: a number, and what follows it.
  def panels
    rows = tables
    speed = rows.reject { |row| row.first == APPLICATION }
    memory = rows.select { |row| row.first == APPLICATION }.map { |row| row.drop(1) }
    { "Requests per second" => of(speed, 4), "p99, ms" => of(speed, 6),
      "Memory, MiB" => of(memory, 1), **restarts }
  end

  # The cells of the application's tables.
  def tables
    text = File.read(File.join(FOLDER, "ORIGINS.md"), encoding: "UTF-8")
    speed = text[/^\| #{APPLICATION} \| CPU per request.*?\n\n/m] or abort "ORIGINS.md has no table of #{APPLICATION}"
    memory = text[/^\| application \| server \| all processes.*?(?:\n\n|\z)/m] or abort "ORIGINS.md has no memory"
    lines = speed.lines.drop(2) + memory.lines.select { |line| line.start_with?("| #{APPLICATION} |") }
    lines.map { |line| line.split("|").map(&:strip).drop(1) }
  end

  def of(rows, column)
    SERVERS.transform_values do |name|
      row = rows.find { |cells| cells.first.include?(name) } or abort "ORIGINS.md has no row of #{name}"
      row.fetch(column).delete(",")[/\A[\d.]+/] or abort "ORIGINS.md has no figure of #{name}"
    end
  end

  def restarts
    measured = JSON.parse(File.read(File.join(FOLDER, "restarts.json")))
    found = SERVERS.transform_values do |name|
      one = measured["servers"].find { |server| server["server"].include?(name) }
      "#{one['slowest_ms']} (#{one['failed']} failed)"
    end
    { "Slowest answer in #{measured['restarts']} restarts, ms" => found }
  end
end

# Panels of bars, two in a row, for readers with light and with dark pages.
class Chart
  WIDTH = 880
  PANEL = 430 # width
  HEIGHT = 168
  LEFT = 122
  LONGEST = 195
  LINE = 27
  STYLE = "text{font:14px system-ui,sans-serif;fill:#333}.head{font-weight:600;fill:#1d2129}.soft{fill:#5d6470}" \
          ".bar{fill:#9aa7b2}.ours{fill:#1f55c4}.our{font-weight:600}" \
          "@media(prefers-color-scheme:dark){text{fill:#d5dae0}.head{fill:#fff}.soft{fill:#a5acb5}.bar{fill:#5f6d79}" \
          ".ours{fill:#6c9bff}}"
  MORE = "Requests per second"

  def initialize(panels)
    @panels = panels
  end

  def svg
    height = (@panels.size / 2.0).ceil * HEIGHT
    parts = @panels.each_with_index.map do |(title, figures), index|
      panel(title, figures, (index % 2) * (WIDTH - PANEL), (index / 2) * HEIGHT)
    end
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 #{WIDTH} #{height}\" role=\"img\" " \
      "aria-label=\"#{words}\">\n<style>#{STYLE}</style>\n#{parts.join}</svg>\n"
  end

  # What the picture says, for readers who do not see it.
  def words
    panels = @panels.map do |title, figures|
      "#{title}: #{figures.map { |name, value| "#{name} #{shown(value)}" }.join(', ')}"
    end
    CGI.escapeHTML("#{panels.join('. ')}.")
  end

  private

  def panel(title, figures, left, top)
    better = title == MORE ? "more is better" : "less is better"
    most = [figures.values.map(&:to_f).max, 1].max
    bars = figures.each_with_index.map do |(name, value), index|
      bar(name, value, most, left, top + 34 + (index * LINE))
    end
    "<text class=\"head\" x=\"#{left}\" y=\"#{top + 20}\">#{CGI.escapeHTML(title)}" \
      "<tspan class=\"soft\" font-weight=\"400\" dx=\"8\">#{better}</tspan></text>\n#{bars.join}"
  end

  def bar(name, value, most, left, top)
    bar, text = name == "Highball" ? ["ours", " class=\"our\""] : ["bar", ""]
    width = [LONGEST * value.to_f / most, 1].max.round(1)
    "<text#{text} x=\"#{left + LEFT - 8}\" y=\"#{top + 15}\" text-anchor=\"end\">#{CGI.escapeHTML(name)}</text>" \
      "<rect class=\"#{bar}\" x=\"#{left + LEFT}\" y=\"#{top}\" width=\"#{width}\" height=\"20\"/>" \
      "<text#{text} x=\"#{left + LEFT + width + 7}\" y=\"#{top + 15}\">#{shown(value)}</text>\n"
  end

  def shown(text)
    number, note = text.split(/(?= )/, 2)
    "#{number.to_f.round.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ',')}#{note}"
  end
end

chart = Chart.new(Measured.panels)
File.write(File.join(Measured::FOLDER, "chart.svg"), chart.svg)
puts chart.words
