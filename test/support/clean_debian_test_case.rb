# frozen_string_literal: true

require_relative "clean_debian"
require_relative "e2e_test"

# A test that installs something on clean Debians, which are gone when it has ended.
class CleanDebianTestCase < E2ETest
  def setup
    super
    @debians = []
    why_not = CleanDebian.why_not and skip why_not
  end

  def teardown
    super
  ensure
    @debians.each(&:remove)
  end

  private

  # Removes this one at the end of the test, too.
  def for_this_test(debian) = debian.tap { @debians << debian }
end
