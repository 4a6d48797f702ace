# frozen_string_literal: true

require "securerandom"

# A cgroup with a limit of memory, of the version that can be written to. Only root can make one.
class MemoryCgroup
  # Version 1, and version 2 alone or beside it.
  V1 = "/sys/fs/cgroup/memory"
  V2 = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].freeze

  # The cgroup, or nil where none can be made.
  def self.make(limit_bytes)
    parent, version = place
    parent && new(File.join(parent, "highball-test-#{SecureRandom.hex(4)}"), version, limit_bytes)
  rescue SystemCallError
    nil
  end

  # The folder in which cgroups with limits of memory can be made, and its version.
  def self.place
    return [V1, 1] if File.writable?("#{V1}/memory.use_hierarchy") || File.exist?("#{V1}/memory.limit_in_bytes")

    controls = ->(mount) { File.read("#{mount}/cgroup.subtree_control").split.include?("memory") }
    found = V2.find { |mount| File.exist?("#{mount}/cgroup.subtree_control") && controls[mount] }
    found && [found, 2]
  end

  attr_reader :limit_bytes

  def initialize(folder, version, limit_bytes)
    @folder = folder
    @version = version
    @limit_bytes = limit_bytes
    Dir.mkdir(folder)
    write(version == 1 ? "memory.limit_in_bytes" : "memory.max", limit_bytes)
    # Without swap, the limit is one.
    allow_no_swap
  end

  # A command line that runs another one in the cgroup.
  def through = ["sh", "-c", "echo $$ > #{@folder}/cgroup.procs && exec \"$@\"", "sh"]

  # Memory that is not the page cache's, which the kernel gives up before it kills.
  def used_bytes
    stat = File.readlines(File.join(@folder, "memory.stat")).to_h(&:split).transform_values(&:to_i)
    @version == 1 ? stat["total_rss"] : stat["anon"] + stat["shmem"]
  end

  # Processes that the kernel has killed.
  def oom_kills
    events = read(@version == 1 ? "memory.oom_control" : "memory.events")
    events[/^oom_kill (\d+)/, 1].to_i
  end

  # The most that `used_bytes` was, seen 50 times a second while the block ran.
  def peak_during
    peak = used_bytes
    done = false
    sampler = Thread.new do
      until done
        peak = [peak, used_bytes].max
        sleep 0.02
      end
    end
    yield
    peak
  ensure
    done = true
    sampler.join
  end

  # Its processes have to have ended.
  def remove
    50.times do
      return Dir.rmdir(@folder)
    rescue Errno::EBUSY
      sleep 0.1
    end
  end

  private

  def allow_no_swap
    @version == 1 ? write("memory.memsw.limit_in_bytes", @limit_bytes) : write("memory.swap.max", 0)
  rescue SystemCallError
    nil # the kernel does not count swap
  end

  def read(name) = File.read(File.join(@folder, name))
  def write(name, value) = File.write(File.join(@folder, name), value.to_s)
end
