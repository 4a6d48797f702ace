# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "command_to_end"

# A Debian in a folder that has nothing but the packages named here, as on a new machine: no compiler, no Rust, no
# libclang. The folders are kept; tests get copies of them.
class CleanDebian
  CACHE = "/var/cache/highball"
  PACKAGES = %w[ruby ruby-rack bundler].freeze
  PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
  # What this machine's environment must not bring in.
  FOREIGN = %w[HIGHBALL_LIB HIGHBALL_BINARY HIGHBALL_RUBY HIGHBALL_CONTROL HIGHBALL_LAUNCHER GEM_HOME GEM_PATH RUBYLIB
               RUBYOPT BUNDLE_GEMFILE XDG_STATE_HOME XDG_RUNTIME_DIR].freeze
  # The processor that qemu emulates: one without pointer authentication, which costs it five sixths of Ruby's time.
  PROCESSOR = "neoverse-n1"
  ENVIRONMENT = FOREIGN.to_h { |name| [name, nil] }.merge(
    "PATH" => PATH, "HOME" => "/root", "LANG" => "C.UTF-8", "QEMU_CPU" => PROCESSOR
  ).freeze
  # Runs a command in there, as the process that it was started as. The mounts are gone with it.
  ENTER = <<~SH
    root=$1 folder=$2
    shift 2
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    exec chroot "$root" sh -euc 'cd "$1"; shift; exec "$@"' in "$folder" "$@"
  SH

  class Failed < StandardError; end

  # Debian's names of architectures, and the kernel's entries for the emulators of qemu-user-static.
  EMULATORS = { "arm64" => "qemu-aarch64" }.freeze

  # Why there can be none on this machine, if so. `architecture` is Debian's name for it.
  def self.why_not(architecture = nil)
    return "needs root: chroot" unless Process.uid.zero?
    return "needs debootstrap: bin/test gems-build gems" unless File.executable?("/usr/sbin/debootstrap")

    "needs qemu-user-static and binfmt_misc to run programs for #{architecture}" unless runs?(architecture)
  end

  # Whether the kernel of this machine starts programs of this architecture.
  def self.runs?(architecture)
    return true if [nil, IO.popen(%w[dpkg --print-architecture], &:read).strip].include?(architecture)

    emulator = "/proc/sys/fs/binfmt_misc/#{EMULATORS.fetch(architecture)}"
    File.exist?(emulator) && File.read(emulator).start_with?("enabled")
  end

  attr_reader :root

  def initialize(suite, architecture: nil, packages: [])
    @suite = suite
    @architecture = architecture || run_here("dpkg", "--print-architecture").strip
    @packages = packages
    @root = Dir.mktmpdir("highball-debian")
    copy(base, @root)
    File.write("#{@root}/etc/hosts", "127.0.0.1 localhost\n")
  end

  # A path in there, as this machine sees it.
  def path(inside) = File.join(@root, inside)

  # The command line that runs a command in there.
  def command(*words, folder: "/", root: @root)
    ["unshare", "--mount", "--propagation", "private", "sh", "-euc", ENTER, "enter", root, folder, *words]
  end

  # Runs it to its end: its output. Fails if it does.
  def run(*words, env: {}, **place)
    CommandToEnd.output(*command(*words, **place), failed: Failed, env: ENVIRONMENT.merge(env))
  end

  def remove = FileUtils.rm_rf(@root)

  private

  # The kept one.
  def base
    return plain if @packages.empty? && !foreign?

    kept(["minbase", @suite, @architecture, *@packages].join("-")) do |folder|
      foreign? ? unpack_all(folder) : add_packages(folder)
    end
  end

  # The one without these packages.
  def plain
    kept("minbase-#{@suite}-#{@architecture}") do |folder|
      bootstrap(folder)
      remove_archives(folder)
    end
  end

  # apt takes less time for them than another debootstrap. (Debian 12's cannot unpack Debian 13's systemd, either.)
  def add_packages(folder)
    copy(plain, folder)
    FileUtils.cp("/etc/resolv.conf", "#{folder}/etc")
    [%w[update], ["--yes", "--no-install-recommends", "install", *@packages], %w[clean]].each do |words|
      run("apt-get", "--quiet", *words, root: folder, env: { "DEBIAN_FRONTEND" => "noninteractive" })
    end
  end

  # Emulation would take minutes to configure the packages. Unpacked they are enough to run Ruby.
  def unpack_all(folder)
    bootstrap(folder, "--foreign")
    Dir["#{folder}/var/cache/apt/archives/*.deb"].each { |file| run_here("dpkg-deb", "--extract", file, folder) }
    %w[passwd group].each do |file|
      FileUtils.cp("#{folder}/usr/share/base-passwd/#{file}.master", "#{folder}/etc/#{file}")
    end
    FileUtils.mkdir_p("#{folder}/usr/local/bin")
    remove_archives(folder)
  end

  # A folder of the cache, which the block fills if it is not there. It is complete if it is there, and tests that need
  # the same at the same time wait for the first.
  def kept(name)
    folder = File.join(CACHE, name)
    return folder if File.directory?(folder)

    FileUtils.mkdir_p(CACHE)
    File.open("#{folder}.lock", File::RDWR | File::CREAT) do |lock|
      lock.flock(File::LOCK_EX)
      unless File.directory?(folder)
        remove_unfinished("#{folder}.new")
        yield "#{folder}.new"
        File.rename("#{folder}.new", folder)
      end
    end
    folder
  end

  # What a debootstrap that was killed has left behind, with its mounts.
  def remove_unfinished(folder)
    return unless File.directory?(folder)

    %w[proc sys].each { |name| system("umount", "#{folder}/#{name}", err: File::NULL) }
    run_here("rm", "-rf", "--one-file-system", folder)
  end

  def copy(from, into) = run_here("cp", "--archive", "--reflink=auto", "#{from}/.", into)

  def bootstrap(folder, *options)
    packages = foreign? ? PACKAGES + @packages : PACKAGES
    run_here("debootstrap", "--variant=minbase", "--arch=#{@architecture}", "--include=#{packages.join(',')}", *options,
             @suite, folder, env: { "PATH" => "#{ENV.fetch('PATH')}:/usr/sbin:/sbin" })
    # A Debian that could be made again need not survive a power failure: dpkg has nothing to wait for.
    FileUtils.mkdir_p("#{folder}/etc/dpkg/dpkg.cfg.d")
    File.write("#{folder}/etc/dpkg/dpkg.cfg.d/unsafe-io", "force-unsafe-io\n")
  end

  def remove_archives(folder) = FileUtils.rm_rf(Dir["#{folder}/{debootstrap,var/cache/apt/archives/*.deb}"])

  def foreign? = @architecture != run_here("dpkg", "--print-architecture").strip

  def run_here(*command, env: {}) = CommandToEnd.output(*command, failed: Failed, env: env)
end
