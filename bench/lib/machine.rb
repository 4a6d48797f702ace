# frozen_string_literal: true

module Bench
  # The machine that is measured on.
  module Machine
    TICKS_PER_SECOND = Etc.sysconf(Etc::SC_CLK_TCK)

    # CPU time of the whole machine in ticks: spent in processes and interrupts, stolen by the hypervisor,
    # and all there was.
    CpuTicks = Struct.new(:busy, :steal, :all) do
      def -(other) = CpuTicks.new(*to_a.zip(other.to_a).map { |mine, its| mine - its })

      def steal_percent = percent(steal)

      # What is left of the busy time without these seconds.
      def others_percent(seconds) = percent([busy - (seconds * TICKS_PER_SECOND), 0].max)

      private

      def percent(ticks) = 100.0 * ticks / [all, 1].max
    end

    # The figures behind the stolen time (guests) are part of the first ones.
    def self.cpu_ticks
      ticks = File.foreach("/proc/stat").first.split.drop(1).first(8).map(&:to_i)
      user, nice, system, _idle, _waiting, interrupts, soft_interrupts, steal = ticks
      CpuTicks.new([user, nice, system, interrupts, soft_interrupts].sum, steal, ticks.sum)
    end

    # What the figures depend on: name => version.
    def self.versions
      cpu = File.read("/proc/cpuinfo")[/^model name\s*: (.*)/, 1] || Etc.uname[:machine]
      {
        "System" => "#{File.read('/etc/os-release')[/^PRETTY_NAME="(.*)"/, 1]}, Linux #{Etc.uname[:release]}",
        "CPU" => "#{Etc.nprocessors} × #{cpu}",
        "Ruby" => RUBY_DESCRIPTION,
        "wrk" => IO.popen(%w[wrk -v], err: %i[child out], &:read)[/\Awrk (\S+)/, 1]
      }
    end
  end
end
