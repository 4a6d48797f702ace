# frozen_string_literal: true

require "json"
require "open3"
require "securerandom"
require "tmpdir"
require_relative "highball_server"

# Images and containers for tests, by buildah and podman, in a folder of their own. Containers share this machine's network;
# they need neither its cgroups nor its storage driver.
class Containers
  class Failed < StandardError; end

  PROGRAMS = %w[buildah podman crun].freeze
  # crun refuses machines that have both versions of cgroups: it gets to see only the second.
  ENTER = "mount -t cgroup2 none /sys/fs/cgroup || true; exec \"$@\""
  # Podman starts them in a namespace of mounts of its own.
  APART = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "podman"].freeze
  RUN = ["--network", "host", "--cgroups", "disabled", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"].freeze

  # A server in a container: the process of this machine is podman, which passes signals on.
  class Server < HighballServer
    attr_accessor :name
  end

  # Why there can be none on this machine, if so.
  def self.why_not
    missing = PROGRAMS.reject do |program|
      ENV.fetch("PATH").split(":").any? { |folder| File.executable?(File.join(folder, program)) }
    end
    "needs #{missing.join(', ')}: bin/test gems" unless missing.empty?
  end

  def initialize
    @folder = Dir.mktmpdir("highball-containers")
    @store = ["--root", "#{@folder}/store", "--runroot", "#{@folder}/run", "--storage-driver", "vfs"]
  end

  # An image of what is in this folder.
  def import(folder, name)
    container = buildah("from", "scratch").strip
    buildah("add", "--quiet", container, folder, "/")
    buildah("commit", "--quiet", "--rm", container, name)
  end

  # An image by a Dockerfile. Its steps are run without namespaces of their own: they are ours.
  def build(folder, dockerfile, name, arguments)
    given = arguments.flat_map { |key, value| ["--build-arg", "#{key}=#{value}"] }
    buildah("build", "--isolation", "chroot", "--format", "docker", "--pull-never", "--file", dockerfile, "--tag", name,
            *given, folder)
  end

  # Starts a container of the image, with these options of `podman run`.
  def start(image, *options)
    name = "highball-#{SecureRandom.hex(6)}"
    command = [*APART, *@store, "--cgroup-manager", "cgroupfs", "run", "--rm", "--name", name, *RUN, *options, image]
    server = Server.new("/", command: command)
    server.name = name
    server
  end

  # Runs podman to its end: its output. Fails if it does.
  def run(*arguments) = finish(*APART, *@store, "--cgroup-manager", "cgroupfs", *arguments)

  def bytes_of(image) = JSON.parse(run("image", "inspect", image)).first.fetch("Size")

  # The image's configuration.
  def inspect(image) = JSON.parse(run("image", "inspect", image)).first.then { |found| found["Config"].merge(found.slice("Healthcheck")) }

  def remove = FileUtils.rm_rf(@folder)

  private

  def buildah(*arguments) = finish("buildah", *@store, *arguments)

  def finish(*command)
    output, status = Open3.capture2e(*command)
    raise Failed, "#{command.join(' ')} (#{status}): #{output}" unless status.success?

    output
  end
end
