# frozen_string_literal: true

require "json"
require "securerandom"
require "tmpdir"
require_relative "command_to_end"
require_relative "highball_server"

# Images and containers for tests, by buildah and podman, in a temporary folder. Containers share this machine's network
# and do without its cgroups.
class Containers
  class Failed < StandardError; end

  PROGRAMS = %w[buildah podman crun].freeze
  # Podman runs in a separate mount namespace. crun refuses a machine that has both versions of cgroups: it gets to see
  # only the second. And crun gives the container's user what is its standard input: a device in this folder has the
  # place of this machine's /dev/null.
  ENTER = <<~'SH'
    mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null || true
    [ -e "$0/null" ] || mknod --mode=666 "$0/null" c 1 3
    mount --bind "$0/null" /dev/null
    exec "$@"
  SH
  RUN = %w[--network host --cgroups disabled --ulimit nofile=4096:4096 --ulimit nproc=4096:4096].freeze

  # A server in a container: the process of this machine is podman, which passes signals on.
  class Server < HighballServer
    attr_accessor :name
  end

  # Why there can be none on this machine, if so.
  def self.why_not
    missing = PROGRAMS.reject do |program|
      ENV.fetch("PATH").split(":").any? { |folder| File.executable?(File.join(folder, program)) }
    end
    "needs #{missing.join(', ')}: bin/test gems-build gems" unless missing.empty?
  end

  def initialize
    @folder = Dir.mktmpdir("highball-containers")
    @store = ["--root", "#{@folder}/store", "--runroot", "#{@folder}/run", "--storage-driver", driver]
  end

  # Why none of this image starts here, whatever it runs, if so.
  def why_not(image)
    run("run", "--rm", *RUN, image, "true")
    nil
  rescue Failed => e
    "podman cannot start containers on this machine: #{e.message}"
  end

  # Makes an image of the content of a folder.
  def import(folder, name)
    container = buildah("from", "scratch").strip
    buildah("add", "--quiet", container, folder, "/")
    buildah("commit", "--quiet", "--rm", container, name)
  end

  # Builds an image with a Dockerfile. Its steps run in this machine's namespaces. The programs `missing` do nothing.
  def build(folder, dockerfile, name, missing: [])
    volumes = missing.flat_map { |program| ["--volume", "/bin/true:#{program}:ro"] }
    buildah("build", "--isolation", "chroot", "--format", "docker", "--pull-never", *volumes,
            "--file", dockerfile, "--tag", name, folder)
  end

  # Starts a container of the image, with these options of `podman run`, and its command or this one.
  def start(image, *options, command: [])
    name = "highball-#{SecureRandom.hex(6)}"
    Server.new("/", command: podman("run", "--rm", "--name", name, *RUN, *options, image, *command))
          .tap { |server| server.name = name }
  end

  # Runs podman to its end: its output. Fails if it does.
  def run(*arguments) = finish(*podman(*arguments))

  # The same for a command in a container.
  def exec(server, *command) = run("exec", server.name, *command)

  def bytes_of(image) = inspect(image).fetch("Size")

  # Facts about an image.
  def inspect(image) = JSON.parse(run("image", "inspect", image)).first

  # A container that a failed test has left goes, too.
  def remove
    run("rm", "--all", "--force", "--time", "0")
  ensure
    FileUtils.rm_rf(@folder)
  end

  private

  # The kernel puts no overlay on an overlay; the other driver copies all files of an image for each container.
  def driver = finish("stat", "--file-system", "--format=%T", @folder).strip == "overlayfs" ? "vfs" : "overlay"

  def podman(*arguments) = [*apart("podman"), *@store, "--cgroup-manager", "cgroupfs", *arguments]

  def apart(program) = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", ENTER, @folder, program]

  def buildah(*arguments) = finish("buildah", *@store, *arguments)

  def finish(*command) = CommandToEnd.output(*command, failed: Failed)
end
