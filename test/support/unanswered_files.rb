# frozen_string_literal: true

# A file that behaves as on a file system that does not answer.
module UnansweredFiles
  SYSTEM_CALLS = { "x86_64" => [300, 301], "aarch64" => [262, 263] }.freeze # fanotify_init, fanotify_mark
  FAN_CLASS_CONTENT = 0x4
  FAN_MARK_ADD = 0x1
  FAN_OPEN_PERM = 0x10000
  AT_FDCWD = -100

  private

  # While the block runs, processes that open the file wait: the kernel asks this process for permission, and gets no
  # answer (fanotify(7)). Afterwards they all get it.
  def without_answer(path)
    numbers = SYSTEM_CALLS[RbConfig::CONFIG["host_cpu"]]
    skip "no numbers of system calls for this machine" unless numbers
    asked = IO.for_fd(syscall(numbers[0], FAN_CLASS_CONTENT, File::RDONLY))
    syscall(numbers[1], asked.fileno, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, path)
    yield
  rescue Errno::EPERM, Errno::EINVAL, Errno::ENOSYS => e
    skip "this system does not let a test hold up others: #{e.message}"
  ensure
    asked&.close
  end
end
