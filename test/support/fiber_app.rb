# frozen_string_literal: true

# An application whose requests under /on run on fibers, as a config.ru.
#
# /on/where, /where:: the thread, the class of the scheduler, and what the env says
# /on/sleep?SECONDS, /on/compute?SECONDS
# /on/lines:: ten lines, 50 ms apart: as `each`, or as `call` with ?call
# /on/flood:: blocks without end
# /on/large:: a megabyte
# /on/file:: this file; /on/named:: by X-Sendfile
# /on/raise, /on/exit, /on/throw, /on/hijack
# /garbage:: writes to the sockets that its process has for answers
# /state:: what has become of them
module FiberApp
  CONFIG = <<~'RUBY'
    require "json"
    require "socket"

    # New sockets of this process that carry packets.
    def packet_sockets
      Dir.children("/proc/self/fd").map(&:to_i).select do |number|
        socket = Socket.for_fd(number).tap { |one| one.autoclose = false }
        socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_SEQPACKET
      rescue SystemCallError
        false
      end
    end

    def write_garbage
      (packet_sockets - $own).each do |number|
        Socket.for_fd(number).tap { |one| one.autoclose = false }.sendmsg_nonblock("\xFFgarbage", 0)
      end
      "garbage"
    end

    STATE = Hash.new(0)
    Lines = Struct.new(:count) do
      def each
        count.times do |number|
          sleep 0.05 if number.positive?
          yield "line #{number}\n"
        end
      ensure
        STATE["ended"] += 1
      end
      def close = STATE["closed"] += 1
    end
    Flood = Class.new(Lines) { def each = loop { yield "x" * 10_000; STATE["flood"] += 10_000 } }
    Named = Struct.new(:to_path) { def each = yield(File.read(to_path)) }

    def lines_to(stream)
      Lines.new(10).each { |line| stream << line }
      stream.close
    end

    def where(env)
      { thread: Thread.current.name, scheduler: Fiber.current_scheduler&.class&.name, hijack: env["rack.hijack?"] }.to_json
    end

    def answer(env)
      $own ||= packet_sockets # the worker's, at its first request
      query = env["QUERY_STRING"]
      case env["PATH_INFO"].delete_prefix("/on")
      when "/where" then where(env)
      when "/state" then STATE.merge(pid: Process.pid, threads: Thread.list.size).to_json
      when "/sleep" then sleep(query.to_f) && "slept"
      when "/compute" then (till = Process.clock_gettime(Process::CLOCK_MONOTONIC) + query.to_f) &&
                           (nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < till) || "computed"
      when "/lines" then query == "call" ? method(:lines_to) : Lines.new(10)
      when "/many" then Lines.new(1_000_000)
      when "/flood" then Flood.new
      when "/large" then ["x" * 500_000, "y" * 500_000]
      when "/file" then Named.new(__FILE__)
      when "/named" then { "x-sendfile" => __FILE__ }
      when "/echo" then env["rack.input"].read
      when "/after" then (env["rack.after_reply"] << -> { STATE["after_reply"] += 1 }) && "after"
      when "/large_head" then { "x-large" => "x" * 40_000 }
      when "/garbage" then write_garbage
      when "/raise" then raise "of the application"
      when "/exit" then exit
      when "/throw" then throw :nothing
      when "/fork" then (pid = fork { sleep 0.05; exit!(7) }) && Process.wait2(pid).last.exitstatus.to_s
      when "/hijack" then env["rack.hijack"].inspect
      when "/try" then Object.const_get("Tries").public_send(query).to_s
      else "hello"
      end
    end

    run(lambda do |env|
      what = answer(env)
      case what
      when String then [200, { "content-type" => "text/plain" }, [what]]
      when Hash then [200, { "content-type" => "text/plain" }.merge(what), []]
      else [200, { "content-type" => "text/plain" }, what]
      end
    rescue Exception => e
      STATE[e.class.name] += 1
      raise
    end)
  RUBY
end
