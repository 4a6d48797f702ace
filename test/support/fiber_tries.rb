# frozen_string_literal: true

# What requests on fibers do with libraries, for the FiberApp. Each method waits for something, and returns what came.
module FiberTries
  CONFIG = <<~'RUBY'
    require "net/http"
    require "open3"
    require "openssl"
    require "socket"
    require "timeout"
    require "tempfile"

    module Tries
      extend self

      # A service that answers each connection after a while.
      SLOW = TCPServer.new("127.0.0.1", 0)
      Thread.new do
        loop do
          Thread.new(SLOW.accept) do |client|
            nil until client.gets == "\r\n"
            sleep 0.3
            client.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nslow")
            client.close
          end
        end
      end

      def net_http = Net::HTTP.get(URI("http://127.0.0.1:#{SLOW.addr[1]}/"))

      def openssl
        key = OpenSSL::PKey::RSA.new(2048)
        certificate = OpenSSL::X509::Certificate.new
        certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
        certificate.public_key = key.public_key
        certificate.serial = 1
        certificate.not_before = Time.now - 60
        certificate.not_after = Time.now + 60
        certificate.sign(key, "SHA256")
        ours, theirs = UNIXSocket.pair
        context = OpenSSL::SSL::SSLContext.new
        context.cert, context.key = certificate, key
        server = Thread.new do
          socket = OpenSSL::SSL::SSLSocket.new(theirs, context).tap(&:accept)
          line = socket.gets
          sleep 0.3
          socket.write(line.upcase)
          socket.close
        end
        client = OpenSSL::SSL::SSLSocket.new(ours).tap(&:connect)
        client.puts("tls")
        client.gets.chomp.tap { server.join }
      end

      def open3 = Open3.capture2("sh", "-c", "sleep 0.3; cat", stdin_data: "captured").first
      def backquote = `sleep 0.3; printf backquoted`
      def system_call = system("sleep 0.3; exit 3") || $?.exitstatus
      def process_wait = Process.wait2(spawn("sleep 0.3; exit 4")).last.exitstatus
      def dns = Addrinfo.getaddrinfo("localhost", 80, nil, :STREAM).map(&:ip_address).include?("127.0.0.1")
      def no_name = Addrinfo.getaddrinfo("no-such-name.invalid", 80) rescue $!.class.ancestors.include?(SocketError)

      def timeout
        Timeout.timeout(0.3) { sleep 30 }
      rescue Timeout::Error
        "timed out"
      end

      def timeout_of_read
        reader, _writer = IO.pipe
        Timeout.timeout(0.3) { reader.read }
      rescue Timeout::Error
        "timed out"
      end

      def queue
        queue = Thread::Queue.new
        Thread.new { sleep 0.3; queue << "popped" }
        queue.pop
      end

      def sized_queue
        queue = Thread::SizedQueue.new(1)
        Thread.new { sleep 0.1; 3.times { sleep 0.1; queue.pop } }
        3.times { |number| queue << number }
        "pushed"
      end

      LOCK = Mutex.new
      def mutex = LOCK.synchronize { sleep 0.01 } && "locked"

      def condition
        lock, changed, done = Mutex.new, ConditionVariable.new, false
        Thread.new { sleep 0.3; lock.synchronize { done = true; changed.signal } }
        lock.synchronize { changed.wait(lock) until done }
        "signalled"
      end

      def condition_with_a_time
        lock = Mutex.new
        lock.synchronize { ConditionVariable.new.wait(lock, 0.3) }
        "over"
      end

      def thread = Thread.new { sleep 0.3; "joined" }.value
      def monitor = Monitor.new.then { |monitor| monitor.synchronize { monitor.synchronize { sleep 0.3 } } } && "entered"

      def select
        reader, writer = IO.pipe
        Thread.new { sleep 0.3; writer << "." }
        IO.select([reader], nil, nil, 30).first == [reader]
      end

      def select_with_a_time = IO.select([IO.pipe.first], nil, nil, 0.3).inspect

      # Inherited ones block, and stay so: others have them, too.
      def blocking_pipe
        reader, writer = IO.pipe
        require "io/nonblock"
        [reader, writer].each { |io| io.nonblock = false }
        Thread.new { sleep 0.3; writer << "piped"; writer.close }
        reader.read.tap { |text| return "changed" if reader.nonblock? }
      end

      def large_pipe
        reader, writer = IO.pipe
        require "io/nonblock"
        [reader, writer].each { |io| io.nonblock = false }
        length = Thread.new { sleep 0.3; reader.read.size }
        writer.write("x" * 1_000_000)
        writer.close
        length.value
      end

      # Another fiber closes what this one waits for.
      def closed
        reader, _writer = IO.pipe
        Fiber.schedule { sleep 0.1; reader.close }
        reader.wait_readable
      rescue IOError
        "closed"
      end

      def enumerator = Enumerator.new { |y| sleep 0.3; y << "next" }.next
      def file = Tempfile.create { |file| file.write("written"); file.rewind; sleep 0.3; file.read }
      def udp = (socket = UDPSocket.new.tap { |one| one.bind("127.0.0.1", 0) }) && (Thread.new { sleep 0.3; UDPSocket.new.send("datagram", 0, "127.0.0.1", socket.addr[1]) }) && socket.recv(100)
      def tcp = (server = TCPServer.new("127.0.0.1", 0)) && (Thread.new { sleep 0.3; TCPSocket.new("127.0.0.1", server.addr[1]).puts("line") }) && server.accept.gets.chomp

      def sqlite3
        require "sqlite3"
        SQLite3::Database.new(":memory:").tap { sleep 0.3 }.execute("select 6 * 7").flatten.first
      end

      def pg
        require "pg"
        connection = PG.connect(ENV.fetch("DATABASE_URL"))
        connection.exec("select 'row' from pg_sleep(0.3)").getvalue(0, 0).tap { connection.close }
      end

      def redis
        require "redis"
        Redis.new(url: ENV.fetch("REDIS_URL")).blpop("nothing", timeout: 1).inspect
      end
    end
  RUBY
end
