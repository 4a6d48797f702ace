# frozen_string_literal: true

module Highball
  # The memory of this process as the kernel counts it, in KiB, named as in PROTOCOL.md of the supervisor.
  module OwnMemory
    PATH = "/proc/self/smaps_rollup"
    NAMES = { private_dirty_kib: "Private_Dirty", pss_kib: "Pss", rss_kib: "Rss" }.freeze

    module_function

    # nil if the kernel does not report it.
    def figures(text = File.read(PATH))
      figures = NAMES.transform_values { |name| text[/^#{name}:\s*(\d+) kB$/, 1]&.to_i }
      figures if figures.values.all?
    rescue SystemCallError
      nil
    end
  end
end
