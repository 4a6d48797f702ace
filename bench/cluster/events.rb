# frozen_string_literal: true

require_relative "machine"

# What happens to machines under load.
class Events
  def initialize(machines, network)
    @machines = machines
    @network = network
  end

  def kill = @machines.last.kill

  def cut
    @network.cut(@machines.last.name)
    sleep 15 # all that HAProxy needs to notice, also of connections that are quiet
  end
end
