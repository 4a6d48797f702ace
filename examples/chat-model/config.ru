# frozen_string_literal: true

require_relative "chat"
require_relative "live"

map("/each") { run Chat::Each.new }
map("/call") { run Chat::Call.new }
map("/live") { run Chat::LiveController.action(:show) }
map("/hello") { run ->(_env) { [200, { "content-type" => "text/plain" }, ["hello\n"]] } }
