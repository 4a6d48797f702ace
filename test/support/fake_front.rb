# frozen_string_literal: true

require "socket"
require "tempfile"
require "highball/native"
require_relative "deadline"

# The front's end of a ring, played by the test in the worker's process: it places requests and takes answers as
# PROTOCOL.md of the ring describes. The ring is a file instead of a memfd. It wakes no thread through the ring (Ruby
# has no futex): threads that wait in the ring are woken as by an interrupt, and look again.
class FakeFront
  MAGIC = "HBRING\0\x01".b
  VERSION = 9
  ENTRIES_AT = 4096
  SLOTS_AT = 8192
  REQUEST_BYTES = 64 * 1024
  CONTROL = 128
  CURSOR = 136
  PLACES = 512
  KEYS = %w[REQUEST_METHOD SCRIPT_NAME PATH_INFO QUERY_STRING REQUEST_URI SERVER_NAME SERVER_PORT SERVER_PROTOCOL
            REMOTE_ADDR CONTENT_TYPE CONTENT_LENGTH HTTP_HOST].freeze
  HTTP_UPGRADE = 29
  PLACED = 1
  TAKEN_BACK = 3
  FLAGS = { inline: 1, spooled: 2, https: 4, http10: 8, head: 16, no_takeover: 32 }.freeze
  KINDS = { 1 => :head, 2 => :body, 3 => :file, 4 => :hijack, 5 => :end, 6 => :abort, 7 => :failure,
            8 => :stream }.freeze
  WAITS = %w[claim write begin head answer reply fail file hijack early_hints].freeze # methods of the ring
  USUAL = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/", "REQUEST_URI" => "/", "SERVER_NAME" => "test",
            "SERVER_PORT" => "80", "REMOTE_ADDR" => "127.0.0.1", "HTTP_HOST" => "test" }.freeze

  # An answer so far: its frames as [kind, payload], in order.
  Answer = Struct.new(:frames) do
    def ended? = %i[end abort failure stream].include?(frames.last&.first)
    def complete? = %i[end failure].include?(frames.last&.first)
    def kinds = frames.map(&:first)
    def heads = frames.select { |kind, _| kind == :head }.map { |_, payload| Head.parse(payload) }
    def head = heads.last
    def status = failure ? 500 : head&.status

    # The worker's report of an exception; the front answers 500.
    def failure = frames.assoc(:failure)&.last
    def body = frames.select { |kind, _| kind == :body }.map(&:last).join
  end

  Head = Struct.new(:status, :hijack, :fields) do
    def self.parse(payload)
      status, flags = payload.unpack("S<C")
      fields = []
      rest = payload.byteslice(4..)
      until rest.empty?
        name, value = rest.unpack("S<L<")
        fields << [rest.byteslice(6, name), rest.byteslice(6 + name, value)]
        rest = rest.byteslice((6 + name + value)..)
      end
      new(status, flags == 1, fields)
    end

    def [](name) = fields.assoc(name)&.last
  end

  # A request that was placed.
  Placed = Struct.new(:slot, :position, :consumed, :bytes)

  attr_reader :ring, :descriptors

  def initialize(threads: 1, most_threads: threads, slots: most_threads + 4, response_bytes: 64 * 1024)
    Highball::Extension.load
    @slots = slots
    @response_bytes = response_bytes
    @position = 0
    @free = (0...slots).to_a
    @placed = {}
    @sockets = {}
    make_memory(threads, most_threads)
    @descriptors, theirs = UNIXSocket.pair(:SEQPACKET)
    wake, @wake = IO.pipe
    wake.close
    @ring = Highball::Ring.new(*[@memory.dup, @wake.dup, theirs].map { |io| hand_over(io) })
  end

  # Places a request: `fields` are env names and values beside the usual ones; nil leaves a usual one out. Returns it.
  def place(fields = {}, body: nil, file: nil, flags: [])
    slot = @free.shift or raise "all slots are in use"
    @position += 1
    send_file(slot, file) if file
    flags |= [:inline] if body
    flags |= [:spooled] if file
    write_request(slot, USUAL.merge(fields).compact, body || "", flags.sum { |flag| FLAGS.fetch(flag) })
    poke(control(slot), [0, 0].pack("L<2"))
    poke(control(slot) + 12, [0, 0].pack("L<2"))
    write_entry(@position, slot, PLACED)
    @placed[slot] = Placed.new(slot, @position, 0, +"".b)
  end

  # Takes an unclaimed request back, as the front does when another worker is idle.
  def take_back(placed)
    write_entry(placed.position, placed.slot, TAKEN_BACK)
    @free.push(placed.slot) if @placed.delete(placed.slot)
  end

  # Bytes of the answer that were written so far.
  def written(placed) = peek(control(placed.slot), 4).unpack1("L<")

  # The frames that have come so far; makes room for more by taking them, at most `most` bytes. Frees the slot when
  # the answer has ended.
  def take(placed, most: @response_bytes)
    length = [(written(placed) - placed.consumed) % (1 << 32), most].min
    raise "the worker wrote beyond the area" if length > @response_bytes

    placed.bytes << written_bytes(placed, length)
    placed.consumed = (placed.consumed + length) % (1 << 32)
    poke(control(placed.slot) + 4, [placed.consumed].pack("L<"))
    answer = Answer.new(frames(placed.bytes))
    connect(placed) if answer.kinds.include?(:hijack) && !@sockets.key?(placed.position)
    @free.push(placed.slot) if answer.ended? && @placed.delete(placed.slot)
    answer
  end

  # Offers the answer to this request a socket, as the front does when it goes on for long. Returns the front's end; a
  # packet is a frame.
  def offer(placed)
    ours, theirs = UNIXSocket.pair(:SEQPACKET)
    send_descriptor(placed.position, placed.slot, theirs)
    theirs.close
    ours
  end

  # The number that the request has for worker and supervisor.
  def ticket(placed) = (placed.position << 16) | placed.slot

  # The next frame from such a socket, as [kind, payload]; nil: it was closed.
  def frame_from(socket)
    packet = socket.recv(64 * 1024)
    frames(packet).first unless packet.nil? || packet.empty?
  end

  # Takes the answer as it comes until it has ended.
  def answer_to(placed, within: 10)
    Deadline.wait("the end of an answer", within: within) do
      wake
      answer = take(placed)
      answer if answer.ended?
    end
  end

  # Cancels a request, as the front does when the client has disconnected.
  def cancel(placed)
    poke(control(placed.slot) + 16, [1].pack("L<"))
    wake
  end

  # Takes no more answers.
  def cancel_all = @placed.each_value { |placed| cancel(placed) }

  # Ends waits in the ring: threads look again for requests, or for room.
  def wake
    waiting = Thread.list.select { |thread| WAITS.include?(thread.backtrace_locations(0, 1)&.first&.base_label) }
    waiting.each do |thread|
      thread.wakeup
    rescue ThreadError
      nil # it has ended since
    end
  end

  # The descriptor that a FILE frame refers to.
  def receive_descriptor(kind)
    _tag, _from, _flags, *controls = @descriptors.recvmsg(16, scm_rights: true)
    io = controls.first.unix_rights.first
    kind.for_fd(io.fileno).tap { io.autoclose = false }
  end

  private

  def make_memory(threads, most_threads)
    @memory = Tempfile.create("highball-ring").binmode
    File.unlink(@memory.path)
    @memory.truncate(SLOTS_AT + (@slots * (REQUEST_BYTES + @response_bytes)))
    poke(0, MAGIC + [VERSION, @slots, REQUEST_BYTES, @response_bytes, most_threads, threads].pack("L<6"))
    poke(PLACES, [threads].pack("L<"))
    poke(CURSOR, [1].pack("Q<"))
  end

  def write_entry(position, slot, state)
    poke(ENTRIES_AT + ((position % 512) * 8), [(position << 24) | (slot << 8) | state].pack("Q<"))
  end

  # The ring owns the descriptor from now on.
  def hand_over(io)
    io.autoclose = false
    io.fileno
  end

  def write_request(slot, fields, body, flags)
    block = fields.map { |name, value| field(name, value) }.join
    fixed = [40 + block.bytesize, fields.size, flags, 0, body.bytesize, 0, 0].pack("L<4Q<3")
    poke(control(slot) + CONTROL, fixed + block + body)
  end

  def field(name, value)
    index = name == "HTTP_UPGRADE" ? HTTP_UPGRADE : KEYS.index(name)
    return [index, 0, value.bytesize].pack("S<S<L<") + value.b if index

    [0xffff, name.bytesize, value.bytesize].pack("S<S<L<") + name.b + value.b
  end

  def send_file(slot, file) = send_descriptor(@position, slot, file)

  # Makes the socket pair, as the front does when it reads a HIJACK frame.
  def connect(placed)
    @sockets[placed.position], theirs = UNIXSocket.pair
    send_descriptor(placed.position, placed.slot, theirs)
    theirs.close
    bell = control(placed.slot) + 8
    poke(bell, [peek(bell, 4).unpack1("L<") + 1].pack("L<"))
    wake
  end

  def send_descriptor(position, slot, descriptor)
    rights = Socket::AncillaryData.unix_rights(descriptor)
    @descriptors.sendmsg([position, slot].pack("Q<S<"), 0, nil, rights)
  end

  # The area is a ring of bytes.
  def written_bytes(placed, length)
    area = peek(control(placed.slot) + REQUEST_BYTES, @response_bytes)
    (area + area).byteslice(placed.consumed % @response_bytes, length)
  end

  def frames(bytes)
    frames = []
    until bytes.bytesize < 4
      word = bytes.unpack1("L<")
      kind = KINDS.fetch(word & 0xff)
      length = word >> 8
      break if bytes.bytesize < 4 + length

      frames << [kind, bytes.byteslice(4, length)]
      bytes = bytes.byteslice((4 + length)..)
    end
    frames
  end

  def control(slot) = SLOTS_AT + (slot * (REQUEST_BYTES + @response_bytes))
  def peek(offset, length) = @memory.pread(length, offset)
  def poke(offset, bytes) = @memory.pwrite(bytes, offset)
end
