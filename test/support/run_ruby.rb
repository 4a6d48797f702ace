# frozen_string_literal: true

require "open3"
require "rbconfig"

# Another Ruby process.
module RunRuby
  LIB = File.expand_path("../../lib", __dir__)

  private

  # Runs this script after this feature of Highball's is loaded. Returns what it has printed, and fails unless it ends
  # well.
  def run_ruby(feature, script, env: {}, options: [])
    output, status = Open3.capture2e(env, RbConfig.ruby, *options, "-r#{File.join(LIB, feature)}", "-e", script)
    assert_predicate status, :success?, output
    output.chomp
  end
end
