# frozen_string_literal: true

require "fileutils"
require "open3"
require "tmpdir"

# A Debian in a folder that has nothing but the packages named here, as on a new machine: no compiler, no Rust, no
# libclang. One that was made is kept; tests get copies of it.
class CleanDebian
  CACHE = "/var/cache/highball"
  PACKAGES = %w[ruby ruby-rack bundler].freeze
  PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
  # What this machine's environment must not bring in.
  FOREIGN = %w[HIGHBALL_LIB HIGHBALL_BINARY HIGHBALL_RUBY HIGHBALL_CONTROL HIGHBALL_LAUNCHER GEM_HOME GEM_PATH RUBYLIB
               RUBYOPT BUNDLE_GEMFILE XDG_STATE_HOME XDG_RUNTIME_DIR].freeze
  ENVIRONMENT = FOREIGN.to_h { |name| [name, nil] }
                       .merge("PATH" => PATH, "HOME" => "/root", "LANG" => "C.UTF-8").freeze
  # Runs a command in there, as the process that it was started as. The mounts are gone with it.
  ENTER = <<~SH
    root=$1 folder=$2
    shift 2
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    exec chroot "$root" sh -euc 'cd "$1"; shift; exec "$@"' in "$folder" "$@"
  SH

  class Failed < StandardError; end

  # Why there can be none on this machine, if so.
  def self.why_not
    return "needs root: chroot" unless Process.uid.zero?

    "needs debootstrap: bin/test gems-build gems" unless ENV.fetch("PATH").split(":").push("/usr/sbin")
                                                            .any? { |folder| File.executable?("#{folder}/debootstrap") }
  end

  attr_reader :root

  # `emulator`: a program that runs the architecture's programs where this machine cannot (qemu-user-static).
  def initialize(suite, architecture: nil, packages: [], emulator: nil)
    @suite = suite
    @architecture = architecture || run_here("dpkg", "--print-architecture").strip
    @packages = PACKAGES + packages
    @emulator = emulator
    @root = Dir.mktmpdir("highball-debian")
    run_here("cp", "--archive", "--reflink=auto", "#{base}/.", @root)
    File.write("#{@root}/etc/hosts", "127.0.0.1 localhost\n")
  end

  # A path in there, as this machine sees it.
  def path(inside) = File.join(@root, inside)

  # The command line that runs a command in there.
  def command(*words, folder: "/")
    ["unshare", "--mount", "--propagation", "private", "sh", "-euc", ENTER, "enter", @root, folder, *words]
  end

  # Runs it to its end: its output. Fails if it does.
  def run(*words, folder: "/", env: {})
    output, status = Open3.capture2e(ENVIRONMENT.merge(env), *command(*words, folder: folder))
    raise Failed, "#{words.join(' ')} (#{status}): #{output}" unless status.success?

    output
  end

  def remove = FileUtils.rm_rf(@root)

  private

  # The one that is kept: complete if it is there.
  def base
    base = File.join(CACHE, "minbase-#{[@suite, @architecture, *(@packages - PACKAGES)].join('-')}")
    return base if File.directory?(base)

    FileUtils.mkdir_p(CACHE)
    FileUtils.rm_rf("#{base}.new")
    options = ["--variant=minbase", "--arch=#{@architecture}", "--include=#{@packages.join(',')}"]
    run_here({ "PATH" => "#{ENV.fetch('PATH')}:/usr/sbin" }, "debootstrap", *options, @suite, "#{base}.new")
    FileUtils.rm_rf(Dir["#{base}.new/var/cache/apt/archives/*.deb"])
    File.rename("#{base}.new", base)
    base
  end

  def run_here(*command)
    output, status = Open3.capture2e(*command)
    raise Failed, "#{command.last(3).join(' ')} (#{status}): #{output.lines.last(20).join}" unless status.success?

    output
  end
end
