# frozen_string_literal: true

require "json"

# A page and JSON that become shorter, for measuring compression: the application does nothing but hand them out.
ROWS = Array.new(400) { |row| { id: row, name: "item #{row * 7919 % 1013}", price: row * 104_729 % 9973 } }.freeze
PAGE = ROWS.map do |row|
  "<tr class=\"item\"><td><a href=\"/items/#{row[:id]}\">#{row[:name]}</a></td><td>#{row[:price]}</td></tr>\n"
end.join.freeze
LIST = JSON.generate(ROWS).freeze
BODIES = { "/" => ["text/html; charset=utf-8", PAGE], "/items.json" => ["application/json", LIST] }.freeze

type = Rack::CONTENT_TYPE
length = Rack::CONTENT_LENGTH

run(lambda do |env|
  kind, body = BODIES.fetch(env["PATH_INFO"], BODIES["/"])
  [200, { type => kind, length => body.bytesize.to_s }, [body]]
end)
