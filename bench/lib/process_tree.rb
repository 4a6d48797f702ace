# frozen_string_literal: true

module Bench
  # A server's processes: its first one and all that descend from it by parent id. What Highball forks
  # through an intermediate becomes a child of `highball` again, so it is counted with it.
  class ProcessTree
    # Memory in MiB. Pages of the rings are mapped by two processes: they are counted once, and are no part
    # of the private dirty ones.
    Memory = Struct.new(:private_dirty, :pss, :ring)

    RING_NAME = "/memfd:highball-ring"
    MAPPING = /\A\h+-\h+ \S+ \h+ \S+ (?<inode>\d+) +(?<name>.*)/

    def initialize(root)
      @root = root
    end

    # Process ids, the first process at the head; none when that has ended.
    def pids
      children = Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).group_by { |pid| parent(pid) }
      found = parent(@root) ? [@root] : []
      found.each { |pid| found.concat(children.fetch(pid, [])) }
    end

    # CPU time used until now, also by children that ended.
    def cpu_time
      user, system, user_of_dead, system_of_dead =
        pids.filter_map { |pid| stat(pid)&.values_at(11, 12, 13, 14)&.map(&:to_i) }.transpose.map(&:sum)
      raise Failure, "process #{@root} has ended" unless user

      thread_ns = task_files("schedstat").transform_values(&:to_i)
      CpuTime.new(user + user_of_dead, system + system_of_dead, thread_ns)
    end

    # Voluntary and involuntary context switches of all threads until now.
    def context_switches
      task_files("status").values.sum { |text| text.scan(/ctxt_switches:\s+(\d+)/).flatten.sum(&:to_i) }
    end

    def memory
      mappings = pids.flat_map { |pid| mappings(pid) }
      rings, others = mappings.partition { |mapping| mapping["name"].start_with?(RING_NAME) }
      kib = [
        others.sum { |mapping| mapping["Private_Dirty"] },
        mappings.sum { |mapping| mapping["Pss"] },
        rings.group_by { |ring| ring["inode"] }.values.sum { |same| same.map { |ring| ring["Rss"] }.max }
      ]
      Memory.new(*kib.map { |figure| figure / 1024.0 })
    end

    private

    # Nil when the process or thread is gone.
    def read(path)
      File.read(path)
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end

    # Fields from the third on: the second, the name, may hold spaces and brackets.
    def stat(pid) = read("/proc/#{pid}/stat")&.rpartition(")")&.last&.split

    def parent(pid) = stat(pid)&.at(1)&.to_i

    # Path => contents of this file for each thread.
    def task_files(name)
      pids.flat_map { |pid| Dir["/proc/#{pid}/task/*/#{name}"] }.to_h { |path| [path, read(path)] }.compact
    end

    # Inode, name, and sizes in KiB of each mapping of a process.
    def mappings(pid)
      read("/proc/#{pid}/smaps").to_s.split(/^(?=\h+-\h+ )/).map do |entry|
        sizes = entry.scan(/^(\w+): +(\d+) kB/).to_h.transform_values(&:to_i)
        MAPPING.match(entry).named_captures.merge(sizes)
      end
    end
  end

  # CPU time of a process tree at one moment.
  #
  # Two clocks are read. `/proc/PID/task/*/schedstat` counts nanoseconds, but forgets a thread that ends;
  # `/proc/PID/stat` counts ticks of 10 ms, tells user from system time, and keeps the time of threads that
  # ended and of children that were waited for. They agree to within a few ticks. So the sum is taken from
  # schedstat, unless a thread ended in between; its division into user and system time always from stat.
  CpuTime = Struct.new(:user_ticks, :system_ticks, :thread_ns) do
    # User and system time in µs since an earlier moment.
    def since(earlier)
      user = user_ticks - earlier.user_ticks
      system = system_ticks - earlier.system_ticks
      ticks = user + system
      total_us = total_us(earlier, ticks)
      ticks.zero? ? [0.0, total_us] : [total_us * user / ticks, total_us * system / ticks]
    end

    private

    def total_us(earlier, ticks)
      ended = earlier.thread_ns.keys - thread_ns.keys
      return ticks * 1e6 / Machine::TICKS_PER_SECOND if ended.any?

      thread_ns.sum { |thread, ns| ns - earlier.thread_ns.fetch(thread, 0) } / 1e3
    end
  end
end
