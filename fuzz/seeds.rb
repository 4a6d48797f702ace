# frozen_string_literal: true

# Writes the first inputs of the fuzz target that is named: requests as the tests' clients send them. Without these, the
# fuzzer hardly ever makes a whole request of FastCGI or LSAPI.
#
#     ruby fuzz/seeds.rb lsapi

require "fileutils"
require_relative "../test/support/fastcgi_client"
require_relative "../test/support/lsapi_client"

# What a client writes, in one piece and in several: see fuzz_targets/pieces.rs.
class Seeds
  CLIENTS = { "fastcgi" => FastcgiClient, "lsapi" => LsapiClient }.freeze
  CUTS = ["\0", "\x03\x00\x07\x20"].map(&:b).freeze
  REQUESTS = [
    ["GET", "/a%2Fb?x=1", { "Cookie" => "a=b", "X-A" => "1" }],
    ["HEAD", "/", { "Host" => "a.test:81", "If-None-Match" => '"x"' }],
    ["POST", "/p", { "Content-Type" => "text/x", "Authorization" => "Basic YTpi" }, "hello"],
    ["PUT", "/p", { "Transfer-Encoding" => "chunked" }, "x" * 300],
    ["GET", "/s", {}, nil, { "HTTPS" => "on", "REMOTE_ADDR" => "::1", "SERVER_PORT" => "443" }]
  ].freeze

  def initialize(target)
    @client = CLIENTS[target]
    @folder = File.join(__dir__, "corpus", target)
  end

  def write
    return unless @client

    FileUtils.mkdir_p(@folder)
    inputs.product(CUTS).each_with_index do |(bytes, cuts), number|
      File.binwrite(File.join(@folder, "seed-#{number}"), cuts + bytes)
    end
  end

  private

  def inputs
    orders = @client.method_defined?(:order=) ? %i[little big] : [nil]
    orders.flat_map do |order|
      alone = REQUESTS.map { |request| sent(order, request) }
      [*alone, sent(order, *REQUESTS), sent(order, REQUESTS.first, &:abort)]
    end
  end

  # The bytes of these requests on one connection.
  def sent(order, *requests)
    theirs, ours = UNIXSocket.pair
    client = @client.new(theirs)
    client.order = order if order
    requests.each do |method, target, fields, body, params|
      client.send_request(method, target, fields, body, params: params || {})
    end
    yield client if block_given?
    client.close
    ours.read
  end
end

Seeds.new(ARGV.fetch(0)).write
