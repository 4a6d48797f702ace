# frozen_string_literal: true

# Transactions per second of Highball's PStore and of Ruby's, side by side:
#
#     highball bench pstore [--seconds N] [--rounds N]
#     ruby bench/pstore.rb [SECONDS [ROUNDS [FOLDER]]]
#
# Each way is measured for SECONDS (1) in each of ROUNDS (3), one after the other, so that a change of the machine's
# load affects all of them. The table has the median. Stores differ in the number of roots; a transaction reads or
# changes one. Ways are compared only with those of the same durability.

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

  # Each of Highball's follows the one of Ruby's that it is compared with.
  WAYS = {
    "Ruby's" => ->(path) { PStore.new(path, true) },
    "Highball's, in_place, not durable" => ->(path) { Highball::PStore.new(path, durable: false, in_place: true) },
    "Ruby's, ultra_safe" => ->(path) { PStore.new(path, true).tap { |store| store.ultra_safe = true } },
    "Highball's, not durable" => ->(path) { Highball::PStore.new(path, durable: false) },
    "Ruby's, ultra_safe, with fsync" => lambda { |path|
                                          DurablePStore.new(path, true).tap do |store|
                                            store.ultra_safe = true
                                          end
                                        },
    "Highball's" => ->(path) { Highball::PStore.new(path) }
  }.freeze
  ROOTS = [1, 20, 1000].freeze
  VALUE_BYTES = [10, 10_000].freeze
  AT_A_TIME = 8
  # Readers and writers, each a process.
  LOADS = [[1, 0], [2, 0], [0, 1], [0, 2], [2, 1]].freeze

  def initialize(seconds, rounds, folder)
    @seconds = seconds
    @rounds = rounds
    @folder = folder
    @names = Array.new(ROOTS.max) { |root| "root#{root}" }
  end

  def run
    puts "| roots | bytes of a value | processes | way | reads/s | writes/s | against Ruby's |", "|#{' --- |' * 7}"
    ROOTS.product(VALUE_BYTES, LOADS) do |roots, bytes, (readers, writers)|
      results = Array.new(@rounds) { WAYS.map { |_, open| measure(open, roots, bytes, readers, writers) } }.transpose
      report("#{roots} | #{bytes} | #{readers} read, #{writers} write", results.map { |result| median(result) })
    end
  end

  private

  def report(load, results)
    WAYS.keys.each_with_index do |way, index|
      reads, writes = results[index]
      ratio = ratios(results[index - 1], results[index]) if index.odd?
      puts "| #{load} | #{way} | #{reads.round} | #{writes.round} | #{ratio} |"
    end
    $stdout.flush
  end

  def ratios(rubys, ours)
    rubys.zip(ours).reject { |one, _| one.zero? }.map { |one, other| format("%.1f×", other / one) }.join(", ")
  end

  def median(results)
    results.transpose.map { |values| values.sort[values.length / 2] }
  end

  # Reads and writes per second, of all processes.
  def measure(open, roots, bytes, readers, writers)
    Dir.mktmpdir("highball-pstore", @folder) do |folder|
      path = File.join(folder, "store")
      fill(path, roots, bytes)
      reading = Array.new(readers) { process { rate { |number| read(open, path, number, roots) } } }
      writing = Array.new(writers) { process { rate { |number| write(open, path, number, roots) } } }
      [reading, writing].map { |pipes| pipes.sum { |pipe| pipe.read.to_f } }
    end
  end

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
    fork do
      writer.write(yield)
      exit!(0)
    end
    writer.close
    reader
  end

  # Transactions per second. (The clock is not read for each, which would be a part of a fast one's time.)
  def rate
    began = now
    number = 0
    loop do
      AT_A_TIME.times { yield number += 1 }
      elapsed = now - began
      return number / elapsed if elapsed >= @seconds
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

seconds, rounds, folder = ARGV
PStoreBench.new((seconds || 1).to_f, (rounds || 3).to_i, folder || Dir.tmpdir).run
