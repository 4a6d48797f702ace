# frozen_string_literal: true

require "json"
require "minitest/autorun"
require_relative "../support/run_ruby"

# Rack's middleware for entity tags, with OpenSSL's digest and with Ruby's: the same answer to every request.
class EntityTagsTest < Minitest::Test
  include RunRuby

  PROBE = <<~RUBY
    require "json"
    require "openssl"
    require "rack"
    require "zlib"
    %<before>s
    Rack::ETag.name # loads it
    Highball::EntityTags.install
    bodies = [[], [""], ["one"], ["one", "", "two"], ["é" * 70_000], [(0..255).map(&:chr).join.b], ["x" * 1_000_003]]
    headers = [{}, { "etag" => '"mine"' }, { "last-modified" => "Thu, 01 Jan 1970 00:00:00 GMT" },
               { "cache-control" => "no-store" }]
    answers = bodies.product(headers, [200, 201, 404]).map do |body, given, status|
      app = Rack::ETag.new(->(_) { [status, Rack::Headers[given], body] }, "no-cache")
      status, headers, body = app.call({})
      text = +"".b
      body.each { |part| text << part.b }
      [status, headers.to_h, Zlib.crc32(text), text.bytesize]
    end
    print JSON.generate([answers, Rack::ETag.const_defined?(:Digest, false)])
  RUBY
  # Rack 2.2 has no class of this name.
  HEADERS = "Rack::Headers = Rack::Utils::HeaderHash unless Rack.const_defined?(:Headers);"

  def test_every_answer_is_the_same_and_comes_by_openssl
    answers, is_openssl = probe
    assert is_openssl
    assert_equal probe("class Rack::ETag; Digest = ::Digest; end;").first, answers, "with Ruby's digest"
    tags = answers.filter_map { |_, headers,| headers.transform_keys(&:downcase)["etag"] }
    assert_operator tags.uniq.length, :>=, 6
  end

  def test_a_middleware_that_somebody_has_changed_is_left_alone
    prepended = "Rack::ETag.prepend(Module.new);"
    reopened = "class Rack::ETag; def call(env) = @app.call(env); end;"
    assert_equal([false, false], [prepended, reopened].map { |code| probe(code).last })
  end

  def test_an_application_without_openssl_or_without_the_middleware_loads_neither
    without = "require 'rack'; %sHighball::EntityTags.install; p [defined?(OpenSSL), Rack.autoload?(:ETag).nil?]"
    given = ["", "require 'openssl'; "].map do |first|
      run_ruby("highball/entity_tags", format(without, first), options: ["-W0"])
    end
    assert_equal ["[nil, false]", '["constant", false]'], given
  end

  private

  # What all requests were answered, and whether the middleware has a digest for itself.
  def probe(before = "")
    JSON.parse(run_ruby("highball/entity_tags", format(PROBE, before: HEADERS + before), options: ["-W0"]))
  end
end
