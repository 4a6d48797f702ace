# frozen_string_literal: true

require_relative "clean_debian"

# A clean Debian with the programs of systemd and logrotate. (Debian 12's debootstrap cannot unpack Debian 13's systemd
# itself: apt installs it.)
class DebianWithSystemd < CleanDebian
  MORE_PACKAGES = %w[systemd logrotate].freeze

  private

  def base
    plain = super
    kept("#{File.basename(plain)}-with-#{MORE_PACKAGES.join('-')}") do |folder|
      run_here("cp", "--archive", "--reflink=auto", "#{plain}/.", folder)
      install_in(folder)
    end
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
