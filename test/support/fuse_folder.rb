# frozen_string_literal: true

require "rbconfig"
require "socket"

# A file system that stops answering when a test says so, as a network mount whose server is gone. It holds regular
# files in one folder, where others can be created. It speaks the kernel's protocol itself (linux/fuse.h), and needs
# root and /dev/fuse.
class FuseFolder
  # This system mounts nothing for a test.
  class Unavailable < StandardError; end

  # Mounts these files there while the block runs: {"a.txt" => "content"}.
  def self.mounted(path, files)
    folder = new(path, files)
    yield folder
  ensure
    folder&.close
  end

  # The file system is another process: this one may wait for it.
  def initialize(path, files)
    @control, control = UNIXSocket.pair
    @pid = fork do
      @control.close
      FuseProcess.new(path, files, control).run
    ensure
      exit!
    end
    control.close
    problem = @control.gets or raise "the file system has ended"
    return if problem == "\n"

    close
    raise Unavailable, problem
  end

  # From now on, or after this number of answers, these operations get no answer: `:lookup`, `:open`,
  # `:read` and so on.
  def ignore(*operations, after: 0) = tell("ignore", after, *operations)

  # The number of requests without an answer.
  def unanswered = tell("unanswered").to_i

  # Answers everything again, what has waited first.
  def answer = tell("answer")

  # Processes that still wait get an error.
  def close
    @control.close
    Process.wait(@pid)
  end

  private

  def tell(*words)
    @control.puts(words.join(" "))
    @control.gets
  end
end

# The process behind it. It ends with its starter.
class FuseProcess
  SYSTEM_CALLS = { "x86_64" => [165, 166], "aarch64" => [40, 39] }.freeze # mount, umount2
  MNT_DETACH = 2
  OPERATIONS = { 1 => :lookup, 3 => :getattr, 4 => :setattr, 10 => :unlink, 14 => :open, 15 => :read, 16 => :write,
                 17 => :statfs, 18 => :release, 25 => :flush, 26 => :init, 27 => :opendir, 28 => :readdir,
                 29 => :releasedir, 35 => :create }.freeze
  WITHOUT_ANSWER = [2, 36, 42].freeze # forget, interrupt, batch_forget
  ENOENT = 2
  ENOSYS = 38
  SIZE_CHANGES = 1 << 3
  FOLDER = 1
  IN_HEADER = 40
  READ_BYTES = 1 << 18

  def initialize(path, files, control)
    @path = path.dup # the system call takes no frozen string
    @names = files.keys
    @contents = files.values.map(&:b)
    @control = control
    @silent = []
    @left = 0
    @unanswered = []
    @lock = Mutex.new
  end

  def run
    problem = mount
    @control.puts(problem.to_s)
    return if problem

    Thread.new { serve }
    while (words = @control.gets&.split)
      @control.puts(obey(*words))
    end
    syscall(@numbers[1], @path, MNT_DETACH)
  end

  private

  def obey(word, after = 0, *operations)
    @lock.synchronize do
      unless word == "unanswered"
        @silent = operations.map(&:to_sym)
        @left = after.to_i
      end
      @unanswered.slice!(0..).each { |request| reply(request) } if word == "answer"
      @unanswered.length
    end
  end

  def mount
    @numbers = SYSTEM_CALLS[RbConfig::CONFIG["host_cpu"]] or return "no numbers of system calls"
    @device = File.open("/dev/fuse", "r+b")
    options = "fd=#{@device.fileno},rootmode=40755,user_id=0,group_id=0,allow_other"
    syscall(@numbers[0], +"test", @path, +"fuse", 0, options)
    nil
  rescue SystemCallError => e
    e.message
  end

  def serve
    loop do
      request = @device.sysread(READ_BYTES)
      code = request.unpack1("@4L")
      next if WITHOUT_ANSWER.include?(code)

      @lock.synchronize do
        is_ignored = @silent.include?(OPERATIONS[code]) && (@left -= 1).negative?
        is_ignored ? @unanswered << request : reply(request)
      end
    end
  rescue IOError, Errno::ENODEV
    nil # unmounted
  end

  def reply(request)
    code, unique, node = request.unpack("@4LQQ")
    body = answer_to(OPERATIONS[code], node, request.byteslice(IN_HEADER..))
    error, body = body.is_a?(Integer) ? [-body, ""] : [0, body]
    @device.syswrite([16 + body.bytesize, error, unique].pack("LlQ") + body)
  rescue Errno::ENOENT
    nil # it was interrupted
  end

  def answer_to(operation, node, arguments)
    case operation
    when :init then [7, 31, 1 << 17, 0, 12, 9, 1 << 17, 1].pack("LLLLSSLLx36")
    when :lookup then entry(arguments.unpack1("Z*"))
    when :getattr then [1, 0, 0].pack("QLL") + attributes(node)
    when :open, :opendir then [0, 0, 0].pack("QLL")
    when :read then content(node).byteslice(*arguments.unpack("x8QL")) || ""
    when :readdir then arguments.unpack1("x8Q").zero? ? names : ""
    when :statfs then [0, 0, 0, 0, 0, 4096, 255, 4096].pack("QQQQQLLLx28")
    when :release, :releasedir, :flush then ""
    else change(operation, node, arguments)
    end
  end

  def change(operation, node, arguments)
    case operation
    when :create then create(arguments.unpack1("x16Z*"))
    when :unlink then remove(arguments.unpack1("Z*"))
    when :write then write(content(node), *arguments.unpack("x8QL"), arguments)
    when :setattr
      resize(content(node), arguments.unpack1("x16Q")) if arguments.unpack1("L").anybits?(SIZE_CHANGES)
      [1, 0, 0].pack("QLL") + attributes(node)
    else ENOSYS
    end
  end

  def create(name)
    @names << name
    @contents << "".b
    entry(name) + [0, 0, 0].pack("QLL")
  end

  # What has the file open keeps it.
  def remove(name)
    index = @names.index(name) or return ENOENT
    @names[index] = nil
    ""
  end

  def write(content, offset, size, arguments)
    resize(content, offset) if content.bytesize < offset
    content[offset, size] = arguments.byteslice(40, size)
    [size, 0].pack("LL")
  end

  def resize(content, size) = content.replace(content.byteslice(0, size).ljust(size, "\0"))

  def content(node) = @contents.fetch(node - FOLDER - 1)

  def entry(name)
    index = @names.index(name) or return ENOENT
    node = index + FOLDER + 1
    [node, 0, 1, 1, 0, 0].pack("QQQQLL") + attributes(node)
  end

  def attributes(node)
    mode, size = node == FOLDER ? [0o40755, 0] : [0o100644, content(node).bytesize]
    [node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0].pack("Q6L10")
  end

  def names
    @names.each_with_index.select(&:first).map do |name, index|
      entry = [index + FOLDER + 1, index + 1, name.bytesize, 8].pack("QQLL") + name
      entry.ljust((entry.bytesize + 7) / 8 * 8, "\0")
    end.join
  end
end
