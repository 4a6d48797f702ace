# frozen_string_literal: true

require "json"

# An application whose answers stream, as a config.ru. `/state` says what has become of them.
#
# /each, /call:: `n` lines (query), `ms` apart
# /silent:: one line, then nothing
# /flood:: blocks without end; `/state` says how many bytes the server has taken
# /until_closed:: waits for `stream.closed?` before it writes again
# /partial:: a partial hijack that writes in the serving thread
# /no_files, /files:: takes away the room for further files in its process, and gives it back
# /garbage:: writes to the sockets that its process has for answers
module StreamApp
  CONFIG = <<~'RUBY'
    require "json"
    require "socket"

    STATE = Hash.new(0)
    LOCK = Mutex.new
    def STATE.note(what, by = 1) = LOCK.synchronize { self[what] += by }

    class Lines
      def initialize(count, pause)
        @count, @pause = count, pause
      end

      def each
        @count.times do |number|
          sleep @pause if number.positive?
          yield "line #{number}\n"
        end
        STATE.note("whole")
      end

      def close = STATE.note("closed")
    end

    Silent = Class.new(Lines) { def each = (yield "one\n"; sleep) }
    Flood = Class.new(Lines) do
      def each
        loop do
          yield "x" * 10_000
          STATE.note("flood", 10_000)
        end
      end
    end

    def called(env, &body)
      lambda do |stream|
        body.call(stream)
      rescue SystemCallError, IOError => e
        STATE.note(e.class.ancestors.include?(Errno::EPIPE) ? "EPIPE" : e.class.name)
        raise
      ensure
        stream.close
      end
    end

    # New sockets of this process that carry packets.
    def packet_sockets
      Dir.children("/proc/self/fd").map(&:to_i).select do |number|
        socket = Socket.for_fd(number).tap { |one| one.autoclose = false }
        socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_SEQPACKET
      rescue SystemCallError
        false
      end
    end
    FILLING = []

    run(lambda do |env|
      $own ||= packet_sockets # the worker's, at its first request
      query = env["QUERY_STRING"].split("&").to_h { |pair| pair.split("=") }
      count, pause = query.fetch("n", 5).to_i, query.fetch("ms", 50).to_f / 1000
      headers = { "content-type" => "text/plain" }
      (env["rack.after_reply"] ||= []) << -> { STATE.note("after_reply") } if env["PATH_INFO"] != "/state"
      case env["PATH_INFO"]
      when "/state" then [200, headers, [JSON.generate(STATE.merge(threads: Thread.list.count, pid: Process.pid))]]
      when "/each" then [200, headers, Lines.new(count, pause)]
      when "/silent" then [200, headers, Silent.new(1, 0)]
      when "/flood" then [200, headers, Flood.new(1, 0)]
      when "/call" then [200, headers, called(env) { |stream| Lines.new(count, pause).each { |line| stream << line } }]
      when "/until_closed"
        [200, headers, called(env) do |stream|
          stream << "one\n"
          sleep 0.01 until stream.closed?
          STATE.note("saw_closed")
        end]
      when "/partial"
        [200, headers.merge("rack.hijack" => lambda do |io|
          Lines.new(count, pause).each { |line| io << line }
        ensure
          io.close
        end), []]
      when "/no_files"
        Process.setrlimit(:NOFILE, 200, Process.getrlimit(:NOFILE).last)
        begin
          loop { FILLING << File.open(File::NULL) }
        rescue Errno::EMFILE
          [200, headers, ["done"]]
        end
      when "/files"
        FILLING.each(&:close).clear
        [200, headers, ["done"]]
      when "/garbage"
        (packet_sockets - $own).each do |number|
          socket = Socket.for_fd(number).tap { |one| one.autoclose = false }
          socket.sendmsg_nonblock("\xFFgarbage", 0)
        end
        [200, headers, ["done"]]
      else [200, headers, ["hello"]]
      end
    end)
  RUBY
end
