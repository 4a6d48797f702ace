# frozen_string_literal: true

# marks: long

require_relative "../../support/e2e_test"

# Bodies far larger than any buffer, and clients far slower than any worker.
class TransfersTest < E2ETest
  LARGE = (LEVEL == "full" ? 1024 : 256) * MIB
  MAY_GROW = 64 * MIB
  BLOCK = (0..255).map(&:chr).join.b.*(256).freeze # the block that the probe's downloads are made of

  def test_an_upload_arrives_intact_in_bounded_memory
    long
    upload(LARGE)
  end

  def test_a_download_arrives_intact_in_bounded_memory
    long
    download(LARGE)
  end

  def test_smaller_transfers_through_small_buffers
    options = ["--body-memory", "4k", "--response-buffer", "4k"]
    upload(20 * MIB, *options)
    download(20 * MIB, *options)
  end

  def test_an_upload_without_a_length
    server = serve("probe", threads: 1)
    digest = Digest::SHA256.new
    server.connect do |connection|
      connection.write("POST /upload HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n")
      200.times do
        digest << BLOCK
        connection.write("10000\r\n#{BLOCK}\r\n")
      end
      answer = JSON.parse(connection.write("0\r\n\r\n").read_response.body)
      assert_equal [200 * BLOCK.bytesize, digest.hexdigest], answer.values_at("bytes", "sha256")
    end
  end

  # A slow upload does not occupy a worker.
  def test_slow_uploads_keep_no_thread
    server = serve("probe", workers: 1, threads: 1)
    open = Array.new(20) { half_an_upload(server.connect, 100) }
    assert_equal 200, server.get("/").status
    open.each { |connection| assert_equal 100, JSON.parse(connection.write("x" * 50).read_response.body)["bytes"] }
  ensure
    open.each(&:close)
  end

  def test_slow_readers_keep_no_thread
    server = serve("probe", workers: 1, threads: 1)
    open = Array.new(20) do
      server.connect.tap { |connection| connection.send_request("GET", "/download?bytes=200000") }
    end
    assert_equal 200, server.get("/").status
    open.each { |connection| assert_equal 200_000, connection.read_response.body.bytesize }
  ensure
    open.each(&:close)
  end

  def test_spool_files_are_gone_after_their_request
    folder = OwnProcesses.let_use(folder_with)
    server = serve("probe", "--spool-dir", folder)
    5.times { server.request("POST", "/upload", {}, "x" * MIB) }
    server.connect { |connection| half_an_upload(connection, 2 * MIB) }
    assert_empty Dir.children(folder)
    wait_for("close of spool files") do
      ProcessFacts.open_files(server.pids).none? { |link, _| link.start_with?(folder) }
    end
  end

  private

  def upload(bytes, *options)
    server = serve("probe", *options)
    answer = nil
    growth = growth_during(server) { answer = send_upload(server, bytes) }
    assert_equal [bytes, checksum(bytes)], answer.values_at("bytes", "sha256")
    assert_operator growth, :<, MAY_GROW
  end

  def download(bytes, *options)
    server = serve("probe", *options)
    digest = Digest::SHA256.new
    growth = growth_during(server) do
      server.connect do |connection|
        connection.send_request("GET", "/download?bytes=#{bytes}")
        connection.read_response { |piece| digest << piece }
      end
    end
    assert_equal checksum(bytes), digest.hexdigest
    assert_operator growth, :<, MAY_GROW
  end

  def half_an_upload(connection, bytes)
    connection.write("POST /upload HTTP/1.1\r\nHost: test\r\nContent-Length: #{bytes}\r\n\r\n#{'x' * (bytes / 2)}")
  end

  def send_upload(server, bytes)
    server.connect do |connection|
      connection.write("POST /upload HTTP/1.1\r\nHost: test\r\nContent-Length: #{bytes}\r\n\r\n")
      (bytes / BLOCK.bytesize).times { connection.write(BLOCK) }
      JSON.parse(connection.read_response(within: 120).body)
    end
  end

  # The largest growth of the server's memory, in bytes.
  def growth_during(server, &work)
    server.request("POST", "/upload", {}, BLOCK * 4)
    server.get("/download?bytes=1000000")
    before = server.memory_bytes
    server.peak_memory_during(&work) - before
  end

  def checksum(bytes)
    digest = Digest::SHA256.new
    (bytes / BLOCK.bytesize).times { digest << BLOCK }
    digest.hexdigest
  end
end
