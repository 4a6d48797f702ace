# frozen_string_literal: true

# A network namespace (network_namespaces(7)) with a link to this one: another machine, whose network can fail. Needs
# root and the program ip.
class NetworkNamespace
  # Returns a new one; nil: there cannot be one here.
  def self.open
    new if Process.uid.zero? && system("ip", "-V", %i[out err] => File::NULL)
  rescue RuntimeError
    nil
  end

  # The address of this machine, at its end of the link.
  attr_reader :address

  def initialize
    number = Process.pid % 16_000
    @name = "highball-#{number}"
    @link = "hb#{number}"
    network = "10.#{200 + (number / 250 / 8)}.#{number % 250}"
    @address = "#{network}.1"
    ip("netns", "add", @name)
    ip("link", "add", @link, "type", "veth", "peer", "name", "eth0", "netns", @name)
    ip("address", "add", "#{@address}/30", "dev", @link)
    ip("link", "set", @link, "up")
    ip("-n", @name, "address", "add", "#{network}.2/30", "dev", "eth0")
    %w[lo eth0].each { |device| ip("-n", @name, "link", "set", device, "up") }
  rescue RuntimeError
    delete
    raise
  end

  # What runs this command there.
  def command(*words) = ["ip", "netns", "exec", @name, *words]

  # Nothing that is sent arrives, and no connection is closed.
  def disconnect = ip("link", "set", @link, "down")
  def reconnect = ip("link", "set", @link, "up")
  def delete = system("ip", "netns", "delete", @name, err: File::NULL)

  private

  def ip(*words)
    system("ip", *words, err: File::NULL) or raise "ip #{words.join(' ')} failed"
  end
end
