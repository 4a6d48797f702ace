# frozen_string_literal: true

# Transactions per second of Highball's PStore and of Ruby's, side by side:
#
#     highball bench pstore [--seconds N] [--rounds N]
#     ruby bench/pstore.rb [SECONDS [ROUNDS [FOLDER [ROOTS [BYTES]]]]]
#
# Each way is measured for SECONDS (1) in each of ROUNDS (3), one after the other, so that a change of the machine's
# load affects all of them. The table has the median. Stores differ in the number of roots; a transaction reads or
# changes one. Small stores are also changed by several threads of one process, and by many processes. Ways are compared
# only with those of the same durability. A write counts if its change is in the file at the end: of Ruby's, some are
# lost when several processes replace the file. `calls alone` makes the system calls that a transaction of Highball's
# needs, and nothing else: no library in Ruby alone can take less time. ROOTS and BYTES limit the measurement to these,
# for example `1,20 10`.

require "pstore"
require "tmpdir"
own = File.expand_path("../lib/highball/pstore.rb", __dir__)
require File.exist?(own) ? own : "highball/pstore"

# The comparison.
class PStoreBench
  # Ruby's, made durable as Highball's is: the new file and its folder are on the disk after a commit.
  class DurablePStore < PStore
    private

    def save_data_with_atomic_file_rename_strategy(data, _file)
      temporary = "#{@filename}.tmp.#{Process.pid}"
      File.open(temporary, "wb") { |io| io.write(data) && io.fsync }
      File.rename(temporary, @filename)
      File.open(File.dirname(@filename), &:fsync)
    end
  end

  # The system calls of Highball's transactions alone. (For one process at a time.)
  class Calls
    # bytes:: what a commit writes
    def initialize(path, durable: false, in_place: false)
      @path = path.freeze
      @durable = durable
      @in_place = in_place
      @io = File.new(path, File::RDWR).binmode
      @bytes = File.binread(path)
      spare_needed = !in_place && @bytes.bytesize <= (durable ? 64 * 1024 : 4096)
      @spare = open_spare(File.join(File.dirname(path), ".spare")) if spare_needed
    end

    def transaction(read_only = false) # rubocop:disable Style/OptionalBooleanParameter
      return File.stat(@path) if read_only

      @io.flock(File::LOCK_EX)
      File.stat(@path)
      if @in_place then write_in_place
      elsif @spare then write_spare
      else
        write_beside
      end
      @io.flock(File::LOCK_UN)
    end

    private

    # (A larger file than 16 KiB gets another time, so that its bytes need not be read.)
    def write_in_place
      small = @bytes.bytesize <= 16 * 1024
      @io.pread(@bytes.bytesize, 0) if small
      @io.pwrite(@bytes, 0)
      touch(@path) unless small
    end

    def open_spare(path)
      @spare_path = path.freeze
      File.binwrite(path, @bytes)
      File.new(path, File::RDWR).tap(&:fsync)
    end

    # (fcntl's F_SETLEASE, with a write lease, and without.)
    def write_spare
      File.lstat(@spare_path)
      @spare.flock(File::LOCK_EX | File::LOCK_NB)
      @spare.fcntl(1024, 1)
      @spare.pwrite(@bytes, 0)
      touch(@spare_path)
      @spare.fcntl(1024, 2)
      @spare.fdatasync if @durable
      Highball::PStore::Exchange.call(@spare_path, @path)
      @io, @spare = @spare, @io
      @spare.flock(File::LOCK_UN)
      File.open(File.dirname(@path), &:fsync) if @durable
    end

    def write_beside
      io = create
      io.fsync if @durable
      File.rename("#{@path}.new", @path)
      @io.close
      @io = io
      File.open(File.dirname(@path), &:fsync) if @durable
    end

    def create
      io = File.new("#{@path}.new", File::RDWR | File::CREAT | File::EXCL | File::NOFOLLOW)
      io.flock(File::LOCK_EX | File::LOCK_NB)
      io.pwrite(@bytes, 0)
      touch("#{@path}.new")
      io
    end

    def touch(path)
      now = Time.now
      File.utime(now, now, path)
    end
  end

  # Ways of the same durability: Ruby's, Highball's, and the system calls.
  Group = Struct.new(:name, :rubys, :highballs, :calls)
  RUBYS_ULTRA_SAFE = ->(kind, path) { kind.new(path, true).tap { |store| store.ultra_safe = true } }.curry
  GROUPS = [
    Group.new("into the file", ->(path) { PStore.new(path, true) },
              ->(path) { Highball::PStore.new(path, durable: false, in_place: true) },
              ->(path) { Calls.new(path, in_place: true) }),
    Group.new("replace it", RUBYS_ULTRA_SAFE[PStore],
              ->(path) { Highball::PStore.new(path, durable: false) },
              ->(path) { Calls.new(path) }),
    Group.new("replace it, on the disk", RUBYS_ULTRA_SAFE[DurablePStore],
              ->(path) { Highball::PStore.new(path) },
              ->(path) { Calls.new(path, durable: true) })
  ].freeze
  ROOTS = [1, 20, 1000].freeze
  VALUE_BYTES = [10, 10_000].freeze
  AT_A_TIME = 8
  # Readers and writers, each a process, or the writers threads of one.
  Load = Struct.new(:readers, :writers, :threads) do
    def to_s = threads ? "#{writers} threads write" : "#{readers} read, #{writers} write"
    def one? = readers + writers == 1
    def several_writers? = writers > 1 && !threads
  end
  LOADS = [[1, 0], [2, 0], [0, 1], [0, 2], [2, 1]].map { |numbers| Load.new(*numbers) }.freeze
  CROWDS = [[0, 4], [0, 16], [0, 1, true], [0, 4, true], [0, 16, true]].map { |numbers| Load.new(*numbers) }.freeze
  MOST_ROOTS_OF_CROWDS = 20

  def initialize(seconds, rounds, folder, roots, bytes)
    @seconds = seconds
    @rounds = rounds
    @folder = folder
    @roots = roots
    @bytes = bytes
    @processes = []
    @names = Array.new(ROOTS.max) { |root| "root#{root}" }
  end

  def run
    puts "| roots | bytes of a value | processes | commits | way | reads/s | writes/s | against Ruby's | lost |",
         "|#{' --- |' * 9}"
    @roots.product(@bytes) do |roots, bytes|
      loads(roots, bytes).each do |load|
        ways = ways(load)
        results = Array.new(@rounds) { ways.map { |_, _, open| measure(open, roots, bytes, load) } }.transpose
        report("#{roots} | #{bytes} | #{load}", ways, results.map { |result| median(result) })
      end
    end
  end

  private

  def loads(roots, bytes)
    roots <= MOST_ROOTS_OF_CROWDS && bytes == VALUE_BYTES.min ? LOADS + CROWDS : LOADS
  end

  # Group, name and store of each. (Several processes exclude each other, so that more than the calls counts.)
  def ways(load)
    GROUPS.flat_map do |group|
      ways = [[group.name, "Ruby's", group.rubys], [group.name, "Highball's", group.highballs]]
      load.one? && !load.threads ? ways.push([group.name, "calls alone", group.calls]) : ways
    end
  end

  def report(load, ways, results)
    rubys = nil
    ways.zip(results) do |(group, way, _), result|
      *rates, lost = result
      rubys = rates if way == "Ruby's"
      ratio = ratios(rubys, rates) unless way == "Ruby's"
      lost = "#{(lost * 100).round} %" if lost
      puts "| #{load} | #{group} | #{way} | #{rates.map(&:round).join(' | ')} | #{ratio} | #{lost} |"
    end
    $stdout.flush
  end

  def ratios(rubys, ours)
    rubys.zip(ours).reject { |one, _| one.zero? }.map { |one, other| format("%.1f×", other / one) }.join(", ")
  end

  def median(results)
    results.transpose.map { |values| values.compact.sort[values.length / 2] }
  end

  # Reads and writes per second, of all processes, and what part of the writes is lost.
  def measure(open, roots, bytes, load)
    Dir.mktmpdir("highball-pstore", @folder) do |folder|
      path = File.join(folder, "store")
      fill(path, roots, bytes)
      reading = Array.new(load.readers) { process { [rate { |number| read(open, path, number, roots) }] } }
      writing = writers(load, open, path, roots)
      reads, = sums(reading)
      writes, made = sums(writing)
      lost = 1 - kept(path).fdiv(made) if load.several_writers?
      [reads, writes * (1 - (lost || 0)), lost]
    ensure
      end_processes
    end
  end

  # Of what `rate` has returned in all threads of all processes.
  def sums(pipes)
    rates = pipes.flat_map { |pipe| pipe.readlines.map { |line| line.split.map(&:to_f) } }
    [rates.sum(&:first), rates.sum(&:last)]
  end

  # How many increments are in the file.
  def kept(path)
    store = PStore.new(path)
    store.transaction(true) { store.roots.sum { |name| store[name][:number] } }
  end

  # Processes, or one whose threads change the same store.
  def writers(load, open, path, roots)
    return Array.new(load.writers) { process { [writing(open, path, roots)] } } unless load.threads

    one = process do
      @store = open.call(path)
      Array.new(load.writers) { Thread.new { writing(open, path, roots) } }.map(&:value)
    end
    [one]
  end

  def writing(open, path, roots) = rate { |number| write(open, path, number, roots) }

  def fill(path, roots, bytes)
    store = PStore.new(path)
    store.transaction do
      @names.first(roots).each do |name|
        store[name] = { number: 0, text: "x" * bytes, list: [1, +"two"] }
      end
    end
    old = Time.now - 60
    File.utime(old, old, path)
  end

  def read(open, path, number, roots)
    store = (@store ||= open.call(path))
    store.transaction(true) { store[@names[number % roots]][:number] }
  end

  def write(open, path, number, roots)
    store = (@store ||= open.call(path))
    store.transaction { store[@names[number % roots]][:number] += 1 }
  end

  def process
    reader, writer = IO.pipe
    @processes << fork do
      yield.each { |rate| writer.puts(rate.join(" ")) }
      exit!(0)
    end
    writer.close
    reader
  end

  # After an interrupt, they would still write into a folder that is being removed.
  def end_processes
    @processes.each { |pid| Process.kill(:KILL, pid) }
    Process.wait(@processes.shift) until @processes.empty?
  end

  # Transactions per second, and how many. (The clock is not read for each, which would be a part of a fast one's time.)
  def rate
    began = now
    number = 0
    loop do
      AT_A_TIME.times { yield number += 1 }
      elapsed = now - began
      return [number / elapsed, number] if elapsed >= @seconds
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

seconds, rounds, folder, roots, bytes = ARGV
numbers = ->(list, default) { list ? list.split(",").map(&:to_i) : default }
PStoreBench.new((seconds || 1).to_f, (rounds || 3).to_i, folder || Dir.tmpdir,
                numbers[roots, PStoreBench::ROOTS], numbers[bytes, PStoreBench::VALUE_BYTES]).run
