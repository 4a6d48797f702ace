# frozen_string_literal: true

require "cgi"

# What terminals showed while time went on, as an animated SVG without scripts. Each line of a screen is drawn once for
# each time span in which it did not change. Readers who want no motion, and programs that show none, see one moment
# of it.
class TerminalFilm
  # What a cell looks like.
  Style = Struct.new(:foreground, :background, :bold, :dim, :underlined, :reversed) do
    def self.plain = new(nil, nil, false, false, false, false)
  end

  COLUMN = 8.2 # the picture's units
  ROW = 17
  PADDING = 14
  BAR = 34 # height of the window's title
  FONT = 13.5
  BACK = "#14181d"
  INK = "#e9edf2"
  # The sixteen colours of terminals, the bright ones last.
  COLOURS = %w[#2b3138 #ff8a80 #7ed6a2 #f0b36a #8fb8ff #e3a6e8 #7fd3dc #d5dae0
               #8b949e #ffa9a1 #a3e8bf #ffd08a #b3d0ff #f0c6f3 #a8e6ec #ffffff].freeze
  STEPS = [0, 95, 135, 175, 215, 255].freeze

  # columns, rows:: of all screens together, which stand below each other
  def initialize(columns, rows)
    @columns = columns
    @rows = rows
    @frames = [] # [seconds, caption, lines]
  end

  # Adds what is shown from now on: lines with the escape sequences of `tmux capture-pane -e`.
  def add(seconds, caption, lines)
    seconds = [seconds, *@frames.last&.first].max
    @frames.pop if @frames.last&.first == seconds
    last = @frames.last
    @frames << [seconds, caption, lines] unless last && last[1..] == [caption, lines]
  end

  # still:: the second that readers see who want no motion
  def svg(seconds, still:, title:)
    spans = spans_until(seconds)
    height = BAR + (@rows * ROW) + (2 * PADDING)
    width = ((@columns * COLUMN) + (2 * PADDING)).round
    <<~SVG
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{width} #{height}" width="#{width}" height="#{height}" role="img" aria-label="#{CGI.escapeHTML(title)}">
      <title>#{CGI.escapeHTML(title)}</title>
      <style>#{style(spans, seconds)}</style>
      <rect width="#{width}" height="#{height}" rx="10" fill="#{BACK}"/>
      <path d="M0 #{BAR}h#{width}" stroke="#2b3138"/>
      #{%w[#ff8a80 #f0b36a #7ed6a2].each_with_index.map { |fill, index| "<circle cx=\"#{20 + (index * 18)}\" cy=\"17\" r=\"5.5\" fill=\"#{fill}\"/>" }.join}
      #{spans.map { |span| drawn(span, width, still) }.join("\n")}
      </svg>
    SVG
  end

  private

  # [row, text, from, to] of each line that is not empty; the caption is row -1.
  def spans_until(seconds)
    (-1...@rows).flat_map do |row|
      texts = @frames.map { |at, caption, lines| [at, row.negative? ? caption : lines.fetch(row, "").rstrip] }
      runs = texts.chunk_while { |one, other| one[1] == other[1] }.map(&:first)
      runs.each_with_index.filter_map do |(from, text), index|
        to = index + 1 < runs.size ? runs[index + 1][0] : seconds
        [row, text, from, to] unless text.empty?
      end
    end
  end

  def style(spans, seconds)
    times = spans.map { |span| span[2..] }.uniq
    @names = times.each_with_index.to_h { |time, index| [time, "k#{index}"] }
    rules = @names.map do |(from, to), name|
      # The film begins with what shows within its first moment: no viewer sees an empty terminal.
      start, finish = [from < 0.2 ? 0 : from, to].map do |at|
        format("%.2f", [at * 100 / seconds, 100].min).sub(/\.?0+\z/, "")
      end
      shown = start == "0" ? "" : "0%{opacity:0}"
      hidden = finish == "100" ? "100%{opacity:1}" : "#{finish}%,100%{opacity:0}"
      "@keyframes #{name}{#{shown}#{start}%{opacity:1}#{hidden}}.#{name}{animation-name:#{name}}"
    end
    "text{font:#{FONT}px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#{INK};white-space:pre}" \
      ".b{font-weight:700}.d{opacity:.65}.u{text-decoration:underline}" \
      ".h{font:600 13px system-ui,sans-serif;fill:#c3cad2}.f{opacity:0;animation-duration:#{seconds}s;" \
      "animation-timing-function:step-end;animation-iteration-count:infinite}.s{opacity:1}" \
      "@media(prefers-reduced-motion:reduce){.f{animation:none}}#{rules.join}"
  end

  def drawn((row, text, from, to), width, still)
    classes = ["f", @names[[from, to]]]
    classes << "s" if from <= still && still < to
    content =
      if row.negative?
        "<text class=\"h\" x=\"#{width / 2}\" y=\"22\" text-anchor=\"middle\">#{CGI.escapeHTML(text)}</text>"
      else
        cells(text, BAR + PADDING + (row * ROW))
      end
    "<g class=\"#{classes.join(' ')}\">#{content}</g>"
  end

  # The runs of equal style in a line. Each has its length, so that columns stay columns in every font.
  def cells(line, top)
    column = 0
    runs(line).map do |style, text|
      x = PADDING + (column * COLUMN)
      width = text.length * COLUMN
      column += text.length
      foreground, background = colours(style)
      back = background && "<rect x=\"#{x.round(1)}\" y=\"#{top}\" width=\"#{width.round(1)}\" height=\"#{ROW}\" " \
                           "fill=\"#{background}\"/>"
      "#{back}#{run(style, text, x, top, foreground)}"
    end.join
  end

  def run(style, text, from, top, foreground)
    bare = text.strip
    return if bare.empty?

    x = from + ((text.length - text.lstrip.length) * COLUMN)
    classes = [("b" if style.bold), ("d" if style.dim), ("u" if style.underlined)].compact
    attributes = [("class=\"#{classes.join(' ')}\"" if classes.any?),
                  ("style=\"fill:#{foreground}\"" if foreground)]
    "<text x=\"#{x.round(1)}\" y=\"#{top + 13}\" textLength=\"#{(bare.length * COLUMN).round(1)}\" " \
      "#{attributes.compact.join(' ')}>#{CGI.escapeHTML(bare)}</text>"
  end

  def colours(style)
    pair = [style.foreground, style.background]
    style.reversed ? [pair[1] || BACK, pair[0] || INK] : pair
  end

  def runs(line)
    style = Style.plain
    found = []
    line.split(/(\e\[[\d;:]*m)/).each do |part|
      if part.start_with?("\e")
        style = changed(style, part[2..-2].split(/[;:]/).map(&:to_i))
      elsif !part.empty?
        found << [style.dup, part.delete("\u000e\u000f")]
      end
    end
    found
  end

  # Codes that turn something on or off.
  SWITCHES = { 1 => %i[bold], 2 => %i[dim], 4 => %i[underlined], 7 => %i[reversed] }.freeze
  OFF = { 22 => %i[bold dim], 24 => %i[underlined], 27 => %i[reversed] }.freeze

  def changed(style, codes)
    style = style.dup
    codes = [0] if codes.empty?
    until codes.empty?
      code = codes.shift
      if code.zero? then style = Style.plain
      elsif SWITCHES.key?(code) then SWITCHES[code].each { |name| style[name] = true }
      elsif OFF.key?(code) then OFF[code].each { |name| style[name] = false }
      else
        paint(style, code, codes)
      end
    end
    style
  end

  def paint(style, code, codes)
    case code
    when 30..38, 90..97 then style.foreground = colour(code, 30, codes)
    when 40..48, 100..107 then style.background = colour(code, 40, codes)
    when 39 then style.foreground = nil
    when 49 then style.background = nil
    end
  end

  # One of 16 colours, of 256, or of all. `first`: the code of the first colour.
  def colour(code, first, codes)
    number = code - first
    return COLOURS[number] if number < 8
    return COLOURS[number - 52] if number > 8
    return hex(codes.shift(3)) if codes.shift == 2

    case number = codes.shift
    when 0..15 then COLOURS[number]
    when 16..231 then hex([36, 6, 1].map { |base| STEPS[((number - 16) / base) % 6] })
    else hex([8 + ((number - 232) * 10)] * 3)
    end
  end

  def hex(parts) = "##{parts.map { |part| part.to_s(16).rjust(2, '0') }.join}"
end
