# frozen_string_literal: true

# An application that is not fork-safe: at boot it starts a thread, connects to its database and to a server (HUB_PORT),
# and seeds its random numbers. It answers with the state of all these.
require "active_record"
require "json"
require "securerandom"
require "socket"

class Visit < ActiveRecord::Base; end

# A connection like Redis's: the server numbers its connections, and each request names the process that sends it.
class Hub
  def self.connect
    @socket = TCPSocket.new("127.0.0.1", Integer(ENV.fetch("HUB_PORT")))
  end

  def self.close
    @socket.close
  end

  def self.ask
    @lock.synchronize do
      @socket.puts(Process.pid)
      Integer(@socket.gets)
    end
  end

  @lock = Mutex.new
end

# A thread that counts.
class Ticker
  class << self
    attr_reader :ticks

    def start
      @ticks = 0
      @thread = Thread.new { loop { sleep(0.001) && @ticks += 1 } }
    end

    def stop
      @thread.kill.join
    end
  end
end

# The state of this process.
class State
  class << self
    # inherited:: descriptors of the database file that the process has inherited.
    attr_accessor :random, :inherited
  end
end

DATABASE = File.join(__dir__, "db.sqlite3")

# The number of descriptors of the database file that this process has.
def database_files
  Dir.glob("/proc/self/fd/*").count do |fd|
    File.readlink(fd).start_with?(DATABASE)
  rescue Errno::ENOENT
    false
  end
end

ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: DATABASE, pool: 5, timeout: 10_000)
ActiveRecord::Base.connection.execute("CREATE TABLE IF NOT EXISTS visits (id INTEGER PRIMARY KEY, pid INTEGER)")
Hub.connect
Ticker.start
Random.srand(42)
State.random = Random.new(42) # of the application, which has to see to it itself
BOOT = { files: database_files }.freeze

Highball.before_fork do
  Hub.close
  Ticker.stop
end
Highball.after_fork do
  State.inherited = database_files
  Hub.connect
  Ticker.start
  State.random = Random.new
end

def facts
  ticks = Ticker.ticks
  sleep 0.005 until Ticker.ticks > ticks
  Visit.create!(pid: Process.pid)
  { pid: Process.pid, at_boot: BOOT[:files], inherited: State.inherited, files: database_files, hub: Hub.ask,
    visits: Visit.where(pid: Process.pid).count,
    random: [rand(1 << 62), Random.rand(1 << 62), State.random.rand(1 << 62), SecureRandom.hex(8)] }
ensure
  ActiveRecord::Base.connection_handler.clear_active_connections!
end

run ->(_env) { [200, { "content-type" => "application/json" }, [JSON.generate(facts)]] }
