# frozen_string_literal: true

# A process under an attacker's control: makes system calls in it with ptrace(2), as a debugger does. The kernel denies
# the same calls as to the process itself.
class TakenOverProcess
  class NotPossible < StandardError; end

  SYSCALL = "\x0f\x05".b
  # Numbers of system calls of x86_64.
  CALLS = {
    open: 2, close: 3, mmap: 9, ioctl: 16, socket: 41, connect: 42, shutdown: 48, listen: 50, socketpair: 53, clone: 56,
    fork: 57, vfork: 58, execve: 59, kill: 62, ptrace: 101, setuid: 105, personality: 135, chroot: 161, mount: 165,
    tgkill: 234, keyctl: 250, unshare: 272, perf_event_open: 298, prlimit64: 302, process_vm_readv: 310,
    finit_module: 313, bpf: 321, execveat: 322, userfaultfd: 323, pidfd_send_signal: 424, io_uring_setup: 425,
    open_tree: 428, fsopen: 430, clone3: 435, pidfd_getfd: 438
  }.freeze
  # Requests of ptrace(2).
  REQUESTS = { singlestep: 9, getregs: 12, setregs: 13, attach: 16, detach: 17 }.freeze
  # struct user_regs_struct: 27 numbers of 64 bits, of which these hold a call and its arguments.
  REGISTERS = 27
  RAX = 10
  ORIG_RAX = 15
  RIP = 16
  RSP = 19
  ARGUMENTS = [14, 13, 12, 7, 9, 8].freeze # rdi, rsi, rdx, r10, r8, r9
  ALL = 0x40000000 # __WALL: threads too

  # Takes the process over while the block runs.
  def self.take(pid)
    raise NotPossible, "system calls are made by x86_64 registers" unless RUBY_PLATFORM.start_with?("x86_64")

    process = new(pid)
    process.stop
    yield process
  ensure
    process&.release
  end

  attr_reader :pid

  def initialize(pid)
    @pid = pid
  end

  def stop
    ptrace(:attach)
    @attached = true
    Process.wait(@pid, ALL)
    @before = registers
    # It sleeps in a system call: the instruction before the next one makes it.
    @entry = @before[RIP] - SYSCALL.bytesize
    sleeps = memory { |file| file.pread(SYSCALL.bytesize, @entry) } == SYSCALL
    raise NotPossible, "the process does not sleep in a system call" unless sleeps
  end

  # Makes a system call, by its name or number: its result, or the class of its error. Text is passed by a
  # pointer to it.
  def call(name, *arguments)
    room = @before[RSP] - 16_384
    arguments = arguments.map do |argument|
      next argument unless argument.is_a?(String)

      memory { |file| file.pwrite("#{argument}\0", room) }
      room.tap { room += argument.bytesize + 8 }
    end
    result = step(CALLS.fetch(name, name), arguments)
    result.negative? ? SystemCallError.new(nil, -result).class : result
  end

  # The process goes on where it was.
  def release
    return unless @attached

    write_registers(@before) if @before
    ptrace(:detach)
  end

  private

  def step(number, arguments)
    changed = @before.dup
    changed[RAX] = number
    changed[ORIG_RAX] = -1 # the call that was interrupted is not made again here
    changed[RIP] = @entry
    arguments.each_with_index { |argument, place| changed[ARGUMENTS[place]] = argument }
    write_registers(changed)
    ptrace(:singlestep)
    _, status = Process.wait2(@pid, ALL)
    raise NotPossible, "the process has ended: #{status.inspect}" unless status.stopped?

    registers[RAX]
  end

  def memory(&) = File.open("/proc/#{@pid}/mem", "r+b", &)

  def registers
    buffer = "\0".b * (8 * REGISTERS)
    ptrace(:getregs, address(buffer))
    buffer.unpack("q*")
  end

  def write_registers(values)
    buffer = values.pack("q*")
    ptrace(:setregs, address(buffer))
  end

  def address(buffer) = [buffer].pack("p").unpack1("q")
  def ptrace(request, data = 0) = syscall(CALLS.fetch(:ptrace), REQUESTS.fetch(request), @pid, 0, data)
end
