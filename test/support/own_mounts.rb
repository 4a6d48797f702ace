# frozen_string_literal: true

# For tests that mount file systems, each command in a mount namespace: nothing else sees them, and they end with it.
module OwnMounts
  ALONE = ["unshare", "--mount", "--propagation", "private"].freeze

  def setup
    super
    skip "needs root, to mount file systems" unless Process.uid.zero?
    skip "file systems cannot be mounted here" unless system(*ALONE, "mount", "-t", "tmpfs", "none", "/mnt",
                                                             %i[out err] => File::NULL)
  end
end
