# frozen_string_literal: true

require "etc"
require "fileutils"
require "socket"
require "tmpdir"
require_relative "deadline"
require_relative "free_port"

# A PostgreSQL on a free port of this machine, with an empty database. It refuses to run as root, so there it is the
# user `postgres` of Debian's package.
class PostgresServer
  USER = "postgres"

  # The folder of its programs, or nil if none is installed.
  def self.programs = Dir["/usr/lib/postgresql/*/bin"].max_by { |folder| folder[/\d+/].to_i }

  # connections:: how many it accepts
  def initialize(connections: 100)
    @folder = Dir.mktmpdir("highball-postgres")
    @port = FreePort.free_port
    FileUtils.chown(USER, nil, @folder) if Process.uid.zero?
    ended = Process.wait2(as_user("initdb", "-D", data, "-U", USER, "-A", "trust", "--no-sync")).last
    raise "initdb:\n#{File.read(log)}" unless ended.success?

    start(connections)
  end

  def url = "postgresql://#{USER}@127.0.0.1:#{@port}/postgres"

  def finish
    if @pid
      Process.kill(:INT, @pid) # its fast shutdown
      Process.wait(@pid)
    end
    FileUtils.rm_rf(@folder)
  end

  private

  def start(connections)
    settings = { listen_addresses: "127.0.0.1", port: @port, unix_socket_directories: "", fsync: "off",
                 max_connections: connections, shared_buffers: "16MB" }
    @pid = as_user("postgres", "-D", data, *settings.flat_map { |name, value| ["-c", "#{name}=#{value}"] })
    Deadline.wait("PostgreSQL to answer:\n#{File.read(log)}") { File.read(log).include?("ready to accept connections") }
  end

  def as_user(program, *arguments)
    user = Process.uid.zero? ? ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"] : []
    Process.spawn({ "LC_ALL" => "C.UTF-8" }, *user, File.join(self.class.programs, program), *arguments,
                  chdir: "/", %i[out err] => [log, "a"])
  end

  def data = File.join(@folder, "data")
  def log = "#{@folder}/log"
end
