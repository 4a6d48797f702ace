# frozen_string_literal: true

require "digest"
require_relative "../../support/e2e_test"
require_relative "../../support/own_mounts"

# The folder of spool files lies on a small disk: full, filled meanwhile, without inodes, removed, read-only. Each
# refusal is in the log with the option's name, and in `highball status`; uploads succeed again once there is room.
class SmallSpoolTest < E2ETest
  include OwnMounts

  UPLOAD = Random.new(1).bytes(2_500_000)
  APP = <<~RUBY
    require "digest"
    run ->(env) { [200, {}, [Digest::SHA256.hexdigest(env["rack.input"].read)]] }
  RUBY

  def test_a_disk_that_is_nearly_full_until_there_is_room
    serve_on_disk("size=16m", fill: 12)
    assert_match(/WARN +spool_dir: .* has room for .* of request bodies.*remedy.*--spool-dir/m, @server.log)
    refused = post(UPLOAD)
    assert_equal [503, "5"], [refused.status, refused["retry-after"]]
    assert_equal 503, post(nil, chunked).status
    line = wait_for("the line in the log") { @server.log[/a request body was refused.*/] }
    %w[spool_dir free_bytes= body_bytes=2500000 limit=].each { |words| assert_includes line, words }
    assert_match(/spool_dir: .*Request bodies refused since the start: 2/, problem)
    assert_match(/spool folder +spool_dir/, HighballServer.run("status", env: environment).first)
    20.times { post(UPLOAD) }
    assert_operator @server.log.scan("a request body was refused").length, :<=, 3

    File.delete(disk("fill"))
    assert_stored_soon
    File.binwrite(disk("fill"), "x" * (12 << 20))
    wait_for("the limit of a full disk", within: 20) { post(UPLOAD).status == 503 }
  end

  # A limit that is configured, and larger than the disk.
  def test_a_disk_that_is_full_in_the_middle_of_a_body
    serve_on_disk("size=4m", options: %w[--max-spool 100m])
    assert_match(/WARN +spool_dir: .* has room for/, @server.log)
    refused = post(UPLOAD * 4)
    assert_equal 503, refused.status
    assert_match(/a request body was refused: a file .* could not be written: No space left on device.*spool_dir/,
                 @server.log)
    assert_match(/No space left|has room for/, problem)
    assert_equal 503, post(nil, chunked(UPLOAD * 4)).status
    assert_stored_soon
  end

  # Files are in memory then.
  def test_a_disk_without_inodes
    serve_on_disk("size=64m,nr_inodes=3", prepare: "touch $0/one $0/two")
    assert_match(/WARN +spool_dir: no files can be created .*No space left.*kept in memory/, @server.log)
    assert_stored_soon
    assert_match(/kept in memory/, problem)
    File.delete(disk("one"), disk("two"))
    assert_stored_soon
    wait_for("the disk") { !problem.to_s.include?("kept in memory") }
  end

  def test_a_folder_that_is_removed_or_read_only_and_comes_back
    serve_on_disk("size=512m")
    assert_stored_soon
    assert_nil problem
    in_namespace("mount", "-o", "remount,ro", @disk)
    wait_for("the problem", within: 20) { problem.to_s.include?("Read-only file system") }
    assert_stored_soon
    in_namespace("mount", "-o", "remount,rw", @disk)
    wait_for("the end of the problem", within: 20) { problem.nil? }
    assert_match(/there is room for spool files again/, @server.log)
    in_namespace("umount", "-l", @disk)
    in_namespace("rmdir", @disk)
    wait_for("the problem", within: 20) { problem.to_s.include?("No such file") }
    assert_stored_soon
    in_namespace("mkdir", "-m", "1777", @disk)
    assert_stored_soon
    wait_for("the end of the problem", within: 20) { !problem.to_s.include?("No such file") }
  end

  def test_the_doctor_warns_of_it
    disk = folder_with
    command = [*ALONE, "sh", "-c", "mount -t tmpfs -o size=4m none $0 && exec \"$@\"", disk, HighballServer::BINARY,
               "doctor", "--json", "-p", "0", "--spool-dir", disk, folder_with("config.ru" => APP)]
    output, = Open3.capture2e(HighballServer::ENVIRONMENT, *command)
    check = JSON.parse(output[output.index("{\n")..])["checks"].find { |one| one["name"] == "small_spool" }
    assert_equal "warning", check["state"]
    assert_match(/spool_dir: #{disk} has room for 1.0 MiB/, check["what"])
    assert_match(/--spool-dir/, check["remedy"])
  end

  private

  def environment = HighballServer::ENVIRONMENT

  # Serves with spool files on a separate disk; `fill`: MiB that others have there.
  def serve_on_disk(mount_options, fill: 0, prepare: "true", options: [])
    @disk = folder_with
    script = "mount -t tmpfs -o mode=1777,#{mount_options} none $0 && head -c #{fill << 20} /dev/zero > $0/fill && " \
             "{ test -s $0/fill || rm $0/fill; } && #{prepare} && exec \"$@\""
    command = [*ALONE, "sh", "-c", script, @disk, HighballServer::BINARY, "serve", "-b", "127.0.0.1", "-p", "0", "-e",
               "production", "-w", "1", "-t", "1", "--spool-dir", @disk, *options, folder_with("config.ru" => APP)]
    @server = serve(folder_with("config.ru" => APP), command: command)
  end

  # A file on that disk, from outside of its namespace.
  def disk(name) = "/proc/#{@server.pid}/root#{@disk}/#{name}"

  def in_namespace(*command) = system("nsenter", "-t", @server.pid.to_s, "-m", *command, exception: true)
  def problem = @server.full_status["spool_problem"]

  # A client may be answered before it has sent everything.
  def post(body, raw = nil)
    head = body && "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n"
    @server.connect do |connection|
      sender = Thread.new { connection.write(raw || (head + body)) rescue nil } # rubocop:disable Style/RescueModifier
      connection.read_response(within: 60)
    ensure
      sender.kill
    end
  end

  def chunked(body = UPLOAD)
    "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".b +
      "#{body.bytesize.to_s(16)}\r\n".b + body + "\r\n0\r\n\r\n".b
  end

  def assert_stored_soon
    wait_for("room for an upload", within: 20) do
      answer = post(UPLOAD)
      answer.status == 200 && answer.body == Digest::SHA256.hexdigest(UPLOAD)
    end
  end
end
