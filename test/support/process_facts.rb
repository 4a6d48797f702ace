# frozen_string_literal: true

require "etc"

# Facts about processes, from the kernel: their children, their memory, their open files.
module ProcessFacts
  module_function

  # Parents by process: {pid => ppid}.
  def parents
    Dir.children("/proc").grep(/\A\d+\z/).each_with_object({}) do |pid, parents|
      parents[pid.to_i] = parent(pid)
    rescue Errno::ENOENT, Errno::ESRCH
      next
    end
  end

  def parent(pid) = stat(pid)[1].to_i

  # The process and everything below it.
  def tree(pid)
    by_parent = parents.group_by(&:last).transform_values { |pairs| pairs.map(&:first) }
    found = [pid]
    found.each { |one| found.concat(by_parent.fetch(one, [])) }
    found.uniq.select { |one| alive?(one) }
  end

  # Whether the process exists and is not only waiting to be reaped.
  def alive?(pid)
    stat(pid).first != "Z"
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end

  # Whether a thread of the process has this name.
  def thread?(pid, name)
    Dir.glob("/proc/#{pid}/task/*/comm").any? { |path| File.read(path) == "#{name}\n" }
  rescue Errno::ENOENT, Errno::ESRCH
    false # one has just ended
  end

  # Whether a profile of this worker is being taken: the thread that times samples is there.
  def sampled?(pid) = thread?(pid, "highball-ticks")

  # Whether SIGSTOP has stopped all of its threads, which do not stop at the same time.
  def stopped?(pid)
    threads = Dir.children("/proc/#{pid}/task")
    threads.all? { |thread| stat("#{pid}/task/#{thread}").first == "T" }
  end

  # Processes of this group.
  def in_group(group)
    Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select do |pid|
      state, _parent, its_group = stat(pid).first(3)
      its_group.to_i == group && state != "Z"
    rescue Errno::ENOENT, Errno::ESRCH
      false
    end
  end

  # Processes that were started with this in their environment.
  def with_environment(name, value)
    Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select do |pid|
      File.binread("/proc/#{pid}/environ").split("\0").include?("#{name}=#{value}") && alive?(pid)
    rescue SystemCallError
      false
    end
  end

  # Processes whose command lines have all of these texts.
  def with_command(*texts)
    Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select do |pid|
      line = command_line(pid)
      texts.all? { |text| line.include?(text) }
    rescue SystemCallError
      false
    end
  end

  def private_dirty_bytes(pids)
    pids.sum { |pid| rollup(pid, "Private_Dirty") }
  end

  # Each page divided by the number of processes that have it.
  def proportional_bytes(pids)
    pids.sum { |pid| rollup(pid, "Pss") }
  end

  # Pages that a process has freed, and that the kernel takes when it needs memory (MADV_FREE of madvise(2)).
  def lazily_freed_bytes(pids)
    pids.sum { |pid| rollup(pid, "LazyFree") }
  end

  # Pages of memory files, mapped by any of the processes; each file counts once.
  def memfd_bytes(pids)
    open_files(pids).select { |link, _| link.start_with?("/memfd:") }.sum { |_, file| file.blocks * 512 }
  end

  # Deleted files on tmpfs that are still open: a spool in memory.
  def tmpfs_spool_bytes(pids)
    tmpfs = tmpfs_devices
    spools = open_files(pids).select do |link, file|
      !link.start_with?("/memfd:") && file.file? && tmpfs.include?([file.dev_major, file.dev_minor])
    end
    spools.sum { |_, file| file.blocks * 512 }
  end

  def open_file_count(pid)
    Dir.children("/proc/#{pid}/fd").length
  end

  # The processes with the socket that listens on this TCP port of 127.0.0.1 (proc(5), /proc/net/tcp).
  def listeners(port)
    address = format("0100007F:%04X", port)
    listening = File.readlines("/proc/net/tcp").map(&:split).select { |line| line[1] == address && line[3] == "0A" }
    sockets = listening.map { |line| "socket:[#{line[9]}]" }
    Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select { |pid| descriptors(pid).intersect?(sockets) }
  end

  # The targets of its descriptors; empty if it has ended, or may not be read.
  def descriptors(pid)
    Dir.children("/proc/#{pid}/fd").filter_map do |fd|
      File.readlink("/proc/#{pid}/fd/#{fd}")
    rescue Errno::ENOENT
      next # closed meanwhile
    end
  rescue Errno::ENOENT, Errno::ESRCH, Errno::EACCES
    []
  end

  # Seconds of CPU, user and system.
  def cpu_seconds(pids) = cpu_times(pids).sum

  # The same apart: [user, system].
  def cpu_times(pids)
    [11, 12].map { |field| pids.sum { |pid| stat(pid)[field].to_i } / Etc.sysconf(Etc::SC_CLK_TCK).to_f }
  end

  # When it was started, in clock ticks since the machine was.
  def started_at(pid) = stat(pid)[19].to_i

  # Its arguments, or its process title, which may be any bytes: those of a test beside this one, too.
  def command_line(pid) = File.read("/proc/#{pid}/cmdline").scrub.tr("\0", " ")

  # What follows the process's name in /proc/PID/stat: state, ppid, ...
  def stat(pid)
    File.read("/proc/#{pid}/stat").rpartition(") ").last.split
  end

  def rollup(pid, name)
    File.read("/proc/#{pid}/smaps_rollup")[/^#{name}:\s+(\d+) kB/, 1].to_i * 1024
  rescue Errno::ENOENT, Errno::ESRCH
    0
  end

  # Open files by inode, each once: [[link, File::Stat], ...].
  def open_files(pids)
    found = {}
    pids.each do |pid|
      Dir.each_child("/proc/#{pid}/fd") do |fd|
        path = "/proc/#{pid}/fd/#{fd}"
        file = File.stat(path)
        found[[file.dev, file.ino]] ||= [File.readlink(path), file]
      rescue Errno::ENOENT
        next
      end
    rescue Errno::ENOENT, Errno::ESRCH
      next
    end
    found.values
  end

  def tmpfs_devices
    File.readlines("/proc/self/mountinfo").filter_map do |line|
      line.split[2].split(":").map(&:to_i) if line.include?(" - tmpfs ")
    end
  end
end
