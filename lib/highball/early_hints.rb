# frozen_string_literal: true

module Highball
  # `rack.early_hints` (Rack 3.1 SPEC, "Early Hints"): sends headers to the client before the answer is known, as an
  # interim answer (RFC 8297, 103).
  class EarlyHints
    def initialize(ring, ticket)
      @ring = ring
      @ticket = ticket
    end

    # headers:: in any form that is valid for the headers of a response.
    def call(headers)
      usual = headers.to_h { |name, value| [name.to_s, value.is_a?(Array) ? value.map(&:to_s) : value.to_s] }
      @ring.early_hints(@ticket, usual)
      nil
    end
  end
end
