# frozen_string_literal: true

# marks: alone, long (it measures the memory that large bodies take)

require_relative "../../support/gateway_test_case"

# Bodies far larger than any buffer, over FastCGI and LSAPI.
class GatewayTransfersTest < GatewayTestCase
  LARGE = (LEVEL == "full" ? 1024 : 64) * MIB
  MOST_SECONDS = 300
  MAY_GROW = (LEVEL == "full" ? 64 : 32) * MIB
  BLOCK = (0..255).map(&:chr).join.b.*(256).freeze # the block that the probe's downloads are made of

  def setup
    super
    # On a busy machine, the checksum of a GiB takes longer than a request may, by default.
    @server = serve_all("probe", "--max-body", "2g", "--request-timeout", "#{MOST_SECONDS}s")
    with_each(@server) { |connection, _| connection.request("POST", "/upload", {}, BLOCK * 16) }
  end

  def test_uploads_arrive_intact_in_bounded_memory
    with_each(@server) do |connection, protocol|
      2.times { assert_intact(connection, protocol, fields: { "Content-Length" => LARGE.to_s }, length: LARGE) }
    end
  end

  # Only FastCGI has bodies of unknown length.
  def test_an_upload_without_a_length
    gateway(@server, "fastcgi") { |connection| assert_intact(connection, "fastcgi") }
  end

  def test_downloads_arrive_intact_in_bounded_memory
    with_each(@server) do |connection, protocol|
      digest = Digest::SHA256.new
      growth = growth_during do
        connection.get("/download?bytes=#{LARGE}", within: MOST_SECONDS) { |piece| digest << piece }
      end
      assert_equal due, digest.hexdigest, protocol
      assert_operator growth, :<, MAY_GROW, protocol
    end
  end

  private

  def assert_intact(connection, protocol, fields: {}, **options)
    options = {} unless protocol == "lsapi"
    answer = nil
    growth = growth_during do
      answer = connection.request("POST", "/upload", fields, blocks, within: MOST_SECONDS, **options)
    end
    assert_equal({ "bytes" => LARGE, "sha256" => due }, JSON.parse(answer.body), protocol)
    assert_operator growth, :<, MAY_GROW, protocol
  end

  # LARGE bytes, a block at a time.
  def blocks = Array.new(LARGE / BLOCK.bytesize, BLOCK)

  def due
    @due ||= blocks.each_with_object(Digest::SHA256.new) { |block, digest| digest << block }.hexdigest
  end

  # The largest growth of the server's memory, in bytes.
  def growth_during(&work)
    before = @server.memory_bytes
    @server.peak_memory_during(&work) - before
  end
end
