# frozen_string_literal: true

# An application that takes its time: each path in a method that is named for it (`/sleep` in `in_sleep`).
module SlowApp
  SOURCE = <<~'RUBY'
    require "json"
    require "resolv"
    require "socket"

    module Work
      SECONDS = 1.5
      LOCK = Mutex.new
      module_function

      def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def in_loop
        ends = clock + SECONDS
        nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
      end

      def in_sleep = sleep(SECONDS)

      # The back reference keeps Ruby from remembering where it has been.
      def in_regex
        ends = clock + SECONDS
        /\A(a|a)*(c?)\2b\z/.match?("a" * 18) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
      end

      # Another thread has the lock.
      def in_lock
        Thread.new { LOCK.synchronize { sleep(SECONDS) } }
        Thread.pass until LOCK.locked?
        LOCK.synchronize { nil }
      end

      # Three other threads compute.
      def in_gvl
        ends = clock + SECONDS
        others = Array.new(3) { Thread.new { nil while clock < ends } }
        nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
        others.each(&:join)
      end

      def in_query
        database = SQLite3::Database.new(":memory:")
        query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT sum(i) FROM n"
        ends = clock + SECONDS
        database.execute(query) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
      end

      # A server of names that never answers.
      def in_dns
        server = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
        names = Resolv::DNS.new(nameserver_port: [["127.0.0.1", server.local_address.ip_port]], search: [], ndots: 1)
        names.timeouts = SECONDS
        names.getaddress("example.com")
      rescue Resolv::ResolvError
        nil
      end

      def in_gc
        kept = Array.new(500_000) { |number| number.to_s }
        ends = clock + SECONDS
        while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
          kept = kept.map { |text| text + "x" }
          GC.start
        end
      end

      # 50 MB. It is looked at only between two calls, each of which takes up to a second where the machine is busy.
      def in_json
        text = "[#{'12345678,' * 5_600_000}1]"
        ends = clock + (2 * SECONDS)
        JSON.parse(text) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
      end

      # No process writes for a while.
      def in_file
        path = "fifo"
        File.mkfifo(path) unless File.exist?(path)
        Thread.new { File.open(path, "w") { sleep(SECONDS) } }
        File.read(path)
      end
    end
  RUBY

  CONFIG = <<~'RUBY'
    begin
      require "sqlite3"
    rescue LoadError
      nil # its test is left out
    end
    require_relative "work"

    run lambda { |env|
      name = env["PATH_INFO"].split("/")[1]
      case name
      when nil then nil
      when "wait" then sleep(env["QUERY_STRING"].to_f)
      else Work.public_send("in_#{name}")
      end
      [200, {}, ["ok"]]
    }
  RUBY

  private

  def slow_app(more = {}) = folder_with({ "config.ru" => CONFIG, "work.rb" => SOURCE }.merge(more))

  # What `highball status --slow` tells of the last request with this path; nil: nothing.
  def slow_request(server, path)
    slow_requests(server).reverse.find { |request| request["request"] == "GET #{path}" }
  end

  def slow_requests(server)
    JSON.parse(highball("status", "--slow", "--json", *server.which)).first.fetch("slow_requests")
  end

  # Asks for a path, and returns what is kept of the request when it has ended.
  def ended_request(server, target, path = target)
    assert_equal 200, server.get(target, within: 60).status
    wait_for("the report of #{path}") { slow_request(server, path)&.fetch("state") == "ended" }
    slow_request(server, path)
  end
end
