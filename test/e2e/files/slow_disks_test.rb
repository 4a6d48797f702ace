# frozen_string_literal: true

# marks: long

require "digest"
require_relative "../../support/many_apps_test_case"
require_relative "../../support/fuse_folder"

# Files that are on a file system that does not answer, or full, or that are no files. An application with such files
# holds up its own requests for them, and no other application.
class SlowDisksTest < ManyAppsTestCase
  CONTENT = Random.new(5).bytes(MIB)
  HANGING = 12 # requests; more than an application has threads for them
  ANSWERED_WITHIN = 30

  # Larger than what stays in memory.
  UPLOAD = CONTENT * 3

  # Sends the file that the path names, as a body with `to_path`.
  SENDING = <<~'RUBY'
    require "digest"

    class Body
      attr_reader :to_path

      def initialize(path) = @to_path = path
      def each = yield(File.binread(to_path))
    end
    run lambda { |env|
      next [200, {}, [Digest::MD5.hexdigest(env["rack.input"].read)]] if env["REQUEST_METHOD"] == "POST"
      next [200, {}, ["x" * 65_536] * 256] if env["PATH_INFO"] == "/large"
      name = env["PATH_INFO"][%r{\A/sent/(.*)}, 1] or next [200, { "x-ruby" => "yes" }, ["bad"]]
      path = File.join(__dir__, "public/disk", name)
      [200, { "content-length" => File.size(path).to_s }, Body.new(path)]
    }
  RUBY
  LARGE_BYTES = 16 * MIB
  FILES = { "bad/config.ru" => SENDING, "bad/public/own.txt" => "own", "bad/public/disk/none.txt" => "",
            "good/public/small.txt" => "small", "good/public/large.bin" => CONTENT }.freeze

  def test_a_file_system_that_does_not_answer_when_files_are_looked_for
    with_disk("a.txt" => "a") do |server, disk|
      disk.ignore(:lookup)
      clients = hang(server) { |number| "/disk/#{number}.txt" }
      wait_for("a request to the disk") { disk.unanswered.positive? }
      assert_others_are_answered(server)
      disk.answer
      clients.each { |client| assert_equal "yes", client.value["x-ruby"] }
      wait_for("the file") { server.get("/disk/a.txt", { "Host" => "bad" }).body == "a" }
    end
  end

  def test_a_file_system_that_does_not_answer_when_files_are_opened
    with_disk(HANGING.times.to_h { |number| ["#{number}.bin", CONTENT] }) do |server, disk|
      disk.ignore(:open)
      clients = hang(server) { |number| "/disk/#{number}.bin" }
      wait_for("a request to the disk") { disk.unanswered.positive? }
      assert_others_are_answered(server)
      disk.answer
      clients.each { |client| assert_equal 200, client.value.status }
    end
  end

  # Large files, in the middle of which the disk stops.
  def test_a_file_system_that_does_not_answer_when_files_are_read
    with_disk(HANGING.times.to_h { |number| ["#{number}.bin", CONTENT] }) do |server, disk|
      assert_equal CONTENT, server.get("/disk/0.bin", { "Host" => "bad" }).body
      disk.ignore(:read)
      clients = hang(server) { |number| "/disk/#{number}.bin" }
      wait_for("a read") { disk.unanswered.positive? }
      assert_others_are_answered(server)
      disk.answer
      clients.each { |client| assert_equal CONTENT, client.value.body }
    end
  end

  # The worker has opened the file, and passes its descriptor.
  def test_a_file_system_that_does_not_answer_for_files_that_the_application_sends
    with_disk("a.bin" => CONTENT) do |server, disk|
      assert_equal CONTENT, server.get("/sent/a.bin", { "Host" => "bad" }).body
      disk.ignore(:read, :statfs, :flush)
      client = Thread.new { server.get("/sent/a.bin", { "Host" => "bad" }, within: ANSWERED_WITHIN) }
      wait_for("a question to the disk") { disk.unanswered.positive? }
      assert_good_is_answered(server)
      disk.answer
      assert_equal CONTENT, client.value.body
      disk.ignore(:flush)
      assert_equal CONTENT, server.get("/sent/a.bin", { "Host" => "bad" }).body, "closing it takes another thread"
      assert_good_is_answered(server)
    end
  end

  # They leave while their files are read.
  def test_a_file_system_that_does_not_answer_and_clients_that_leave
    with_disk(HANGING.times.to_h { |number| ["#{number}.bin", CONTENT] }) do |server, disk|
      disk.ignore(:read)
      clients = HANGING.times.map do |number|
        server.connect.tap { |client| client.send_request("GET", "/disk/#{number}.bin", { "Host" => "bad" }) }
      end
      wait_for("a question to the disk") { disk.unanswered.positive? }
      clients.each(&:close)
      assert_others_are_answered(server)
    end
  end

  def test_the_end_of_a_server_while_a_file_system_does_not_answer
    with_disk("a.txt" => "a") do |server, disk|
      disk.ignore(:lookup)
      clients = Array.new(HANGING) { server.connect }
      clients.each_with_index do |client, number|
        client.send_request("GET", "/disk/#{number}.txt", { "Host" => "bad" })
      end
      wait_for("a request to the disk") { disk.unanswered.positive? && server.status["connections"] == HANGING }
      server.signal("TERM")
      clients.each { |client| assert_equal "yes", client.read_response(within: ANSWERED_WITHIN)["x-ruby"] }
      wait_for("the end", within: ANSWERED_WITHIN) { server.log.include?("stopped; every request was answered") }
      assert_raises(Errno::ECONNREFUSED) { server.stranger }
      # The kernel keeps a process while a thread of it waits for the disk.
      disk.answer
      assert_predicate server.wait(within: ANSWERED_WITHIN), :success?
    end
  end

  def test_named_pipes_in_the_place_of_files
    server, folder = serve_two(FILES)
    %w[pipe.txt pipe.txt.gz pipe.html 404.html 500.html].each { |name| File.mkfifo("#{folder}/bad/public/#{name}") }
    %w[/pipe.txt /pipe /pipe.html].each do |path|
      wait_for("an answer of Ruby's for #{path}") { server.get(path, { "Host" => "bad" })["x-ruby"] == "yes" }
    end
    assert_others_are_answered(server)
  end

  # Its reader has stopped: lines are dropped, and counted.
  def test_an_access_log_whose_reader_has_stopped
    pipe = File.join(folder_with, "pipe")
    File.mkfifo(pipe, 0o666)
    reader = File.open(pipe, File::RDONLY | File::NONBLOCK)
    server = serve_with("bad" => "access_log = '#{pipe}'", "good" => "")
    long = "/?#{'x' * 6000}"
    wait_for("the report of dropped lines", within: 60) do
      20.times { assert_equal "yes", server.get(long, { "Host" => "bad" })["x-ruby"] }
      assert_good_is_answered(server)
      server.log.match?(/lines were dropped.* lines=[1-9]/)
    end
    wait_for("a line, once it reads again", within: 60) do
      server.get("/again", { "Host" => "bad" })
      reader.read_nonblock(MIB, exception: false).to_s.include?("GET /again ")
    end
  ensure
    reader&.close
  end

  # Where large uploads are stored. Other requests, and uploads that fit into memory, do not wait for it.
  def test_a_file_system_that_does_not_answer_under_spool_files
    with_spool_disk do |server, disk|
      assert_equal Digest::MD5.hexdigest(UPLOAD), upload(server, UPLOAD)
      [%i[create], %i[write], %i[unlink]].each do |operations|
        disk.ignore(*operations)
        clients = Array.new(HANGING) { Thread.new { upload(server, UPLOAD) } }
        wait_for("a question to the disk") { disk.unanswered.positive? }
        assert_others_are_answered(server)
        assert_equal Digest::MD5.hexdigest(CONTENT), upload(server, CONTENT)
        disk.answer
        clients.each { |client| assert_equal Digest::MD5.hexdigest(UPLOAD), client.value }
      end
    end
  end

  # Closing and emptying a file asks it, too; and so does an answer for a client that takes nothing.
  def test_a_file_system_that_does_not_answer_when_spool_files_are_given_back
    with_spool_disk do |server, disk|
      disk.ignore(:setattr, :release)
      assert_equal Digest::MD5.hexdigest(UPLOAD), upload(server, UPLOAD)
      wait_for("a question to the disk") { disk.unanswered.positive? }
      assert_others_are_answered(server)
      disk.answer
      disk.ignore(:create, :write)
      server.connect do |slow|
        slow.send_request("GET", "/large", { "Host" => "bad" })
        wait_for("a question to the disk", within: 30) { disk.unanswered.positive? }
        assert_good_is_answered(server)
        assert_equal LARGE_BYTES, slow.read_response.body.bytesize
      end
    end
  end

  # An access log and spool files on a full disk: requests are answered, and lines are written again when there is room.
  def test_a_full_disk
    with_tiny_disk do |disk|
      spool = OwnProcesses.let_use("#{disk}/spool".tap { |folder| Dir.mkdir(folder) })
      server = serve_with({ "bad" => "access_log = '#{disk}/access.log'", "good" => "" }, "spool_dir = '#{spool}'")
      File.write("#{disk}/full", "x" * (128 << 10)) rescue Errno::ENOSPC # rubocop:disable Style/RescueModifier
      long = "/?#{'x' * 6000}"
      wait_for("the report", within: 60) do
        4.times { assert_equal "yes", server.get(long, { "Host" => "bad" })["x-ruby"] }
        server.log.include?("the access log cannot be written")
      end
      assert_others_are_answered(server)
      refused = server.request("POST", "/", { "Host" => "bad" }, UPLOAD)
      assert_includes [413, 500, 503], refused.status, "there is no room for its body"
      assert_others_are_answered(server)
      File.delete("#{disk}/full")
      File.truncate("#{disk}/access.log", 0)
      wait_for("a line, once there is room") do
        server.get("/again", { "Host" => "bad" })
        File.read("#{disk}/access.log").include?("GET /again ")
      end
    end
  end

  private

  def serve_with(applications, top = "")
    folder = folder_with(FILES.merge("good/config.ru" => echo("good")))
    File.write(File.join(folder, "highball.toml"), "#{top}\n#{entries(applications)}")
    serve_many(folder).tap { |server| ask(server, "good", "/") }
  end

  # A file system of 64 KiB while the block runs.
  def with_tiny_disk
    disk = folder_with
    output, mounted = Open3.capture2e("mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "test", disk)
    skip "this system mounts no file system for a test: #{output}" unless mounted.success?
    begin
      yield disk
    ensure
      system("umount", "-l", disk, exception: true)
    end
  end

  # Two applications, one of which has these files on another disk.
  def with_disk(files)
    server, folder = serve_two(FILES)
    ask(server, "good", "/")
    FuseFolder.mounted("#{folder}/bad/public/disk", files) { |disk| yield server, disk }
  rescue FuseFolder::Unavailable => e
    skip "this system mounts no file system for a test: #{e.message}"
  end

  # The same, with spool files on another disk. A response whose application takes long leaves the pool and uses none.
  def with_spool_disk
    folder = OwnProcesses.let_use(folder_with)
    FuseFolder.mounted(folder, {}) do |disk|
      yield serve_with({ "bad" => "max_streams = 0", "good" => "" }, "spool_dir = '#{folder}'\nmax_spool = '1g'"), disk
    end
  rescue FuseFolder::Unavailable => e
    skip "this system mounts no file system for a test: #{e.message}"
  end

  # The digest that the application answers.
  def upload(server, body) = server.request("POST", "/", { "Host" => "bad" }, body, within: ANSWERED_WITHIN).body

  # Requests that the block's paths hold up: their threads.
  def hang(server)
    HANGING.times.map do |number|
      Thread.new { server.get(yield(number), { "Host" => "bad" }, within: ANSWERED_WITHIN) }
    end
  end

  def assert_others_are_answered(server)
    assert_good_is_answered(server)
    20.times do
      assert_equal "yes", server.get("/", { "Host" => "bad" }, within: ANSWERED_WITHIN)["x-ruby"]
      # The file, or the application's answer: it may be that no thread was free to look.
      assert_equal 200, server.get("/own.txt", { "Host" => "bad" }, within: ANSWERED_WITHIN).status
    end
  end

  # Whatever it is asked for, by several clients.
  def assert_good_is_answered(server)
    concurrently(4) do
      20.times do
        assert_equal "good", ask(server, "good", "/").first
        assert_equal "small", server.get("/small.txt", { "Host" => "good" }).body
        assert_equal CONTENT, server.get("/large.bin", { "Host" => "good" }).body
      end
    end
  end
end
