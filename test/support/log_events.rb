# frozen_string_literal: true

require "highball/log"

# The events of Highball's log, as the sources have them: what `docs/log-events.md` lists.
module LogEvents
  ROOT = File.expand_path("../..", __dir__)
  PAGE = File.join(ROOT, "docs/log-events.md")
  LEVELS = %w[error warn info].freeze
  RUST = /\b(?:tracing::)?(error|warn|info)!\(/
  # Log#error and Log#info, and the methods of workers that call them.
  RUBY = /
    (?:(?:log|Log\.new)\.(?<level>error|info)|(?<once>log_once)|(?<report>report|\blog))\(\s*:(?<name>\w+)(?<rest>[^)]*)
  /x
  # The same with a text in the place of a name.
  NAMELESS = /(?:\blog(?:\.error|\.info)?|Log\.new\.\w+|log_once|report)\(\s*"/
  # What is logged of an exception, and of its request.
  OF_EXCEPTION = %w[error cause backtrace].freeze
  OF_REQUEST = %w[request id].freeze
  TEXT = /"((?:[^"\\]|\\.)*)"/m
  TESTS = "#[cfg(test)]\nmod tests"

  # Lines of the log that are about the same.
  Event = Struct.new(:name, :levels, :messages, :fields)
  # A place in the sources that logs.
  Place = Struct.new(:file, :line, :level, :name, :message, :fields)

  module_function

  # All events, by name.
  def all
    places.select(&:name).group_by(&:name).sort.map do |name, same|
      levels = LEVELS & same.map(&:level)
      Event.new(name, levels, same.filter_map(&:message).uniq, same.flat_map(&:fields).uniq.sort)
    end
  end

  def places = @places ||= rust_places + ruby_places

  def rust_places
    Dir[File.join(ROOT, "crates/*/src/**/*.rs")].grep_v(%r{/tests}).flat_map do |file|
      text = File.read(file)
      text = text[...text.index(TESTS)] if text.include?(TESTS)
      calls(text).map { |level, line, items| rust_place(file, line, level, items) }
    end
  end

  def ruby_places
    Dir[File.join(ROOT, "lib/highball/**/*.rb")].flat_map do |file|
      text = File.read(file)
      text.enum_for(:scan, RUBY).map { ruby_place(file, text, Regexp.last_match) }
    end
  end

  def ruby_place(file, text, call)
    named = call[:rest].scan(/(\w+):(?!:)/).flatten
    fields = call[:once] ? ["why"] : named
    fields = OF_EXCEPTION if fields.empty?
    fields += OF_REQUEST if call[:report]
    line = text[...call.begin(0)].count("\n") + 1
    level = call[:once] ? "info" : call[:level] || "error"
    Place.new(file, line, level, call[:name], Highball::Log::EVENTS.fetch(call[:name].to_sym), ["worker", *fields])
  end

  def rust_place(file, line, level, items)
    name = items.filter_map { |item| item[/\Aname: "(\w+)"\z/, 1] }.first
    at = items.index { |item| item.start_with?('"') }
    facts = items.take(at || items.length).grep_v(/\A(?:name|target): /)
    fields = facts.filter_map { |item| item[/\A[?%]?(?:r#)?([\w.]+)/, 1] }
    Place.new(file, line, level, name, at && message_of(items[at]), fields)
  end

  # Files of workers that log without a name. (Those of Action Cable write to the application's log.)
  def nameless_in_ruby
    Dir[File.join(ROOT, "lib/highball/**/*.rb")].grep_v(%r{/cable/}).select { |file| File.read(file).match?(NAMELESS) }
  end

  # A message without what it has of values; nil: it is all values.
  def message_of(item)
    text = item[TEXT, 1].to_s.gsub(/\\\n\s*/, "").gsub(/\#?\{(?!\{)[^}]*\}/, "…")
    text = text.gsub('\"', '"').gsub(/\{\{|\}\}/) { |two| two[0] }
    text if text.match?(/[a-z]{2}/i)
  end

  # Level, line and arguments of each call.
  def calls(text)
    text.enum_for(:scan, RUST).map do
      match = Regexp.last_match
      [match[1], text[...match.begin(0)].count("\n") + 1, arguments(text, match.end(0))]
    end
  end

  # The arguments from this place on, up to the parenthesis that closes them.
  def arguments(text, at)
    items = [+""]
    depth = 0
    until depth.negative?
      piece = text.match(/\G(?:#{TEXT}|'(?:[^'\\]|\\.)'|.)/m, at)[0]
      at += piece.length
      depth += { "(" => 1, "[" => 1, "{" => 1, ")" => -1, "]" => -1, "}" => -1 }.fetch(piece, 0)
      if piece == "," && depth.zero? then items << +""
      elsif !depth.negative? then items.last << piece
      end
    end
    items.map(&:strip).reject(&:empty?)
  end

  # The table, with what the page says people should do.
  def table(advice)
    rows = all.map do |event|
      message = event.messages.empty? ? "(varies)" : event.messages.map { |text| "`#{escaped(text)}`" }.join("<br>")
      fields = event.fields.map { |field| "`#{field}`" }.join(", ")
      "| `#{event.name}` | #{event.levels.join(', ')} | #{message} | #{fields} | #{advice[event.name]} |"
    end
    ["| event | level | message | fields | what to do |", "| --- | --- | --- | --- | --- |", *rows].join("\n")
  end

  # What to do, by event: the last column of the page's table.
  def advice
    File.readlines(PAGE, chomp: true).grep(/\A\| `\w+` \|/).to_h do |row|
      cells = row.split(/(?<!\\)\|/).map(&:strip)
      [cells[1].delete("`"), cells.last]
    end
  end

  def escaped(text) = text.gsub("|", "\\|").delete("`")
end
