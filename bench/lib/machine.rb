# frozen_string_literal: true

module Bench
  # The machine that is measured on.
  module Machine
    # CPU time of the whole machine in ticks: stolen by the hypervisor, and all.
    CpuTicks = Struct.new(:steal, :all) do
      def steal_percent_since(earlier)
        100.0 * (steal - earlier.steal) / [all - earlier.all, 1].max
      end
    end

    # The eighth figure is the stolen time; those behind it (guests) are part of the first ones.
    def self.cpu_ticks
      ticks = File.foreach("/proc/stat").first.split.drop(1).first(8).map(&:to_i)
      CpuTicks.new(ticks.last, ticks.sum)
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
