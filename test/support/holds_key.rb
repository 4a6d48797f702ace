# frozen_string_literal: true

require "uri"

# Looks for a key in texts that may have it percent-encoded, several times over.
module HoldsKey
  private

  def count_key(text, key)
    forms = [text.dup.force_encoding("BINARY")]
    3.times { forms << forms.last.gsub(/%(\h\h)/n) { Regexp.last_match(1).hex.chr } }
    forms.map { |form| form.scan(key.b).length }.max
  end

  # The key as browsers, programs and links within links write it.
  def forms_of(key)
    once = key.bytes.map { |byte| format("%%%02x", byte) }.join
    [key, once, once.gsub("%", "%25"), key[0, 7] + once[21..]]
  end
end
