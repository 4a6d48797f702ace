# frozen_string_literal: true

require "English"

# The balancer's network, where clients are as well, and a namespace for each machine, with a cable between the two.
class Network
  BALANCER = "10.77.0.1"
  # Loses packets that a machine gets or sends, where the kernel cannot do it by netem.
  LOSS = "table inet loss { chain lost { type filter hook input priority 0; " \
         "%<from>s numgen random mod 1000 < %<n>d drop; }; }"

  # The problem with a program's call.
  class Failed < StandardError; end

  def initialize
    ip("link", "set", "lo", "up")
    ip("link", "add", "cluster", "type", "bridge")
    ip("address", "add", "#{BALANCER}/24", "dev", "cluster")
    ip("link", "set", "cluster", "up")
  end

  # A namespace with this address.
  def add(name, address)
    ip("netns", "add", name)
    ip("link", "add", "to-#{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
    ip("link", "set", "to-#{name}", "master", "cluster", "up")
    ip("-n", name, "link", "set", "lo", "up")
    ip("-n", name, "address", "add", "#{address}/24", "dev", "eth0")
    ip("-n", name, "link", "set", "eth0", "up")
  end

  def remove(name)
    ip("link", "delete", "to-#{name}")
    ip("netns", "delete", name)
  end

  # The beginning of a command that runs there.
  def command_in(name) = ["ip", "netns", "exec", name]

  # A machine without power neither answers nor refuses.
  def cut(name) = ip("link", "set", "to-#{name}", "down")

  # Loses this share of the packets in both directions. Returns how.
  def lose(name, address, percent)
    loss = ["root", "netem", "loss", "#{percent}%"]
    run("tc", "-n", name, "qdisc", "add", "dev", "eth0", *loss)
    run("tc", "qdisc", "add", "dev", "to-#{name}", *loss)
    "netem"
  rescue Failed
    rule = ->(from) { format(LOSS, from: from, n: (percent * 10).round) }
    run(*command_in(name), "nft", rule["iifname \"eth0\""])
    run("nft", rule["ip saddr #{address}"])
    "nftables, as the kernel has no netem"
  end

  private

  def ip(*arguments) = run("ip", *arguments)

  def run(*command)
    output = IO.popen(command, err: %i[child out], &:read)
    raise Failed, "#{command.join(' ')}: #{output}" unless $CHILD_STATUS.success?

    output
  end
end
