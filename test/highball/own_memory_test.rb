# frozen_string_literal: true

require "minitest/autorun"
require "highball/own_memory"

class OwnMemoryTest < Minitest::Test
  def test_the_figures_of_the_kernel
    memory = "x" * (20 << 20)
    figures = Highball::OwnMemory.figures
    assert_equal %i[private_dirty_kib pss_kib rss_kib], figures.keys
    assert_operator figures[:private_dirty_kib], :>=, memory.bytesize / 1024
    assert_operator figures[:rss_kib], :>=, figures[:pss_kib]
  end

  def test_a_kernel_that_reports_something_else
    assert_nil Highball::OwnMemory.figures("Rss: 1 kB\nPss_Dirty: 3 kB\n")
  end
end
