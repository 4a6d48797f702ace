# frozen_string_literal: true

require "rack"

# Tokens of a language model as server-sent events. The model is simulated: it is slow, and needs no key.
module Chat
  HEADERS = { "content-type" => "text/event-stream", "cache-control" => "no-cache" }.freeze

  # A model that writes a few tokens a second.
  class Model
    WORDS = %w[The train leaves the station with a long whistle and climbs slowly up the Brocken].freeze
    MAX_TOKENS = 100_000

    # query:: `tokens`: how many; `per_second`: how fast.
    def initialize(query)
      query = Rack::Utils.parse_query(query)
      @tokens = query.fetch("tokens", 40).to_i.clamp(1, MAX_TOKENS)
      @pause = 1 / query.fetch("per_second", 5).to_f.clamp(0.01, 1000)
    end

    # Yields one event for each token, as soon as the model has it, and one for the end.
    def each
      @tokens.times do |number|
        sleep @pause if number.positive?
        yield "id: #{number}\ndata: #{WORDS[number % WORDS.length]}\n\n"
      end
      yield "event: done\ndata:\n\n"
    end
  end

  # A body with `each`, for every version of Rack: the server asks for the parts.
  class Each
    def call(env)
      [200, HEADERS.dup, Model.new(env["QUERY_STRING"])]
    end
  end

  # A streaming body of Rack 3, which gets the stream. (Highball calls it with Rack 2 as well; other servers may not.)
  class Call
    def call(env)
      model = Model.new(env["QUERY_STRING"])
      body = proc do |stream|
        model.each { |event| stream << event }
      ensure
        stream.close
      end
      [200, HEADERS.dup, body]
    end
  end
end
