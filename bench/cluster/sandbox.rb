# frozen_string_literal: true

require "rbconfig"

# Runs a script in new namespaces: network, mounts, processes. When it ends, however it ends (also by kill -9),
# the kernel ends all of its processes, and removes its networks and files.
module Sandbox
  INSIDE = "CLUSTER_INSIDE" # variable of programs inside
  NEEDED = %w[setpriv unshare ip haproxy].freeze
  FILES = "/run/cluster" # in memory
  # Each program ends with its starter.
  NAMESPACES = %w[setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc
                  --propagation private].freeze
  PREPARE = "mount -t tmpfs -o mode=755 tmpfs /run && mkdir #{FILES} && exec \"$@\"".freeze

  module_function

  def inside? = ENV.key?(INSIDE)

  # The exit status of the script.
  def run(script, arguments)
    check
    environment = { INSIDE => "1", "TMPDIR" => FILES, "PATH" => "#{ENV.fetch('PATH')}:/usr/sbin:/sbin" }
    pid = Process.spawn(environment, *NAMESPACES, "sh", "-c", PREPARE, "sh", RbConfig.ruby, script, *arguments)
    Process.wait2(pid).last.exitstatus
  rescue SignalException
    Process.kill("KILL", pid)
    130
  end

  def check
    abort "This needs root, for network namespaces." unless Process.uid.zero?
    missing = NEEDED.reject { |program| installed?(program) }
    abort "This needs #{missing.join(', ')} (packages util-linux, iproute2, haproxy)." if missing.any?
  end

  def installed?(program)
    [*ENV.fetch("PATH").split(":"), "/usr/sbin", "/sbin"].any? { |folder| File.executable?(File.join(folder, program)) }
  end
end
