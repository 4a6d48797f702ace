# frozen_string_literal: true

# A machine's application, whose speed the environment sets. A request takes SERVICE_MS in the mean (40), by an
# exponential distribution: most are short, some take several times as long. It sleeps meanwhile, as one that waits
# for a database, so that many of these machines fit on one. SLOWNESS times as long (1): the machine is slower than
# others.

require "securerandom"

MEAN = ENV.fetch("SERVICE_MS", "40").to_f * ENV.fetch("SLOWNESS", "1").to_f / 1000
HEADERS = { "content-type" => "text/plain", "x-machine" => ENV.fetch("MACHINE", "none") }.freeze

# (Workers are forked: with Ruby's own generator they would all have the same sequence.)
run lambda { |_env|
  sleep(-Math.log(1 - SecureRandom.random_number) * MEAN)
  [200, HEADERS, ["ok\n"]]
}
