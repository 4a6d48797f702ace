# frozen_string_literal: true

require_relative "clean_debian"

# A clean Debian with the programs of systemd and logrotate. (Debian 12's debootstrap cannot unpack Debian 13's systemd
# itself: apt installs it.)
class DebianWithSystemd < CleanDebian
  MORE_PACKAGES = %w[systemd logrotate].freeze

  private

  # The one that is kept: complete if it is there.
  def base
    plain = super
    base = "#{plain}-with-#{MORE_PACKAGES.join('-')}"
    return base if File.directory?(base)

    FileUtils.rm_rf("#{base}.new")
    run_here("cp", "--archive", "--reflink=auto", plain, "#{base}.new")
    install_in("#{base}.new")
    File.rename("#{base}.new", base)
    base
  end

  def install_in(root)
    made = @root
    @root = root
    FileUtils.cp("/etc/resolv.conf", path("etc"))
    run("apt-get", "--quiet", "update")
    run("apt-get", "--quiet", "--yes", "--no-install-recommends", "install", *MORE_PACKAGES,
        env: { "DEBIAN_FRONTEND" => "noninteractive" })
    run("apt-get", "clean")
  ensure
    @root = made
  end
end
