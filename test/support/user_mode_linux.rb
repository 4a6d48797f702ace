# frozen_string_literal: true

require "open3"
require "rbconfig"
require "shellwords"
require "tmpdir"

# A Linux kernel that runs as a program (Debian's package user-mode-linux), with this machine's files, which it cannot
# change: for tests of what the kernel of this machine does not have.
class UserModeLinux
  ROOT = File.expand_path("../..", __dir__)
  PROGRAM = "linux.uml"
  MEMORY = "1280M"
  # What tests write to: these are in its memory, and hide this machine's.
  WRITTEN = %w[/run /tmp /var/tmp /dev/shm].freeze
  # Where what they would hide waits meanwhile: every Debian has this folder.
  HELD = "/mnt"
  # Its first process.
  INIT = <<~'SH'
    #!/bin/sh
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t cgroup2 none /sys/fs/cgroup
    mount -t tmpfs tmpfs %<held>s && mkdir %<holders>s
    %<hold>s
    for folder in %<written>s; do mount -t tmpfs -o mode=1777 tmpfs $folder; done
    %<put_back>s
    chmod 755 /run && mkdir -p /dev/pts && mount -t devpts devpts /dev/pts
    ln -sf /proc/self/fd /dev/fd
    ip link set lo up
    # From Linux 6.11 on, the option has a name.
    mkdir /tmp/outside
    mount -t hostfs -o hostfs=%<folder>s none /tmp/outside || mount -t hostfs -o %<folder>s none /tmp/outside
    cd %<root>s && env %<environment>s %<command>s >/tmp/outside/output 2>&1 </dev/null
    echo $? >/tmp/outside/code
    echo o >/proc/sysrq-trigger
    sleep 10
  SH

  # Why there is none, if so.
  def self.why_not
    return "needs root" unless Process.uid.zero?

    folders = ENV.fetch("PATH").split(":")
    found = folders.any? { |folder| File.executable?(File.join(folder, PROGRAM)) }
    "needs user-mode-linux: bin/test packages" unless found
  end

  # Runs a command in the folder of this tree: [output, whether it ended with 0].
  def self.run(*command, env: {}, within: 600)
    Dir.mktmpdir("uml", "/tmp") do |folder|
      init = File.join(folder, "init")
      File.write(init, init_script(folder, command, env))
      File.chmod(0o755, init)
      arguments = %W[rootfstype=hostfs rootflags=/ ro mem=#{MEMORY} con=null con0=fd:0,fd:1 quiet init=#{init}]
      console, = Open3.capture2e("timeout", within.to_s, PROGRAM, *arguments, stdin_data: "")
      written = %w[output code].map { |name| File.join(folder, name) }
      output, code = written.map { |path| File.exist?(path) ? File.read(path) : "" }
      ["#{console}\n#{output}", code.strip == "0"]
    end
  end

  def self.init_script(folder, command, env)
    # Ruby 3.1 crashes there with YJIT, while it loads RubyGems.
    environment = { "HIGHBALL_JIT" => "off" }.merge(env).map { |name, value| "#{name}=#{value}" }
    holders = kept(command, env).each_with_index.to_h { |path, index| [path, "#{HELD}/#{index}"] }
    hold = holders.map { |path, holder| ["mount", "--bind", path, holder].shelljoin }
    put_back = holders.map { |path, at| format("mkdir -p %<to>s && mount --bind #{at} %<to>s", to: path.shellescape) }
    format(INIT, root: ROOT.shellescape, folder: folder, environment: environment.shelljoin, command: command.shelljoin,
                 held: HELD, holders: holders.values.push("#{HELD}/none").join(" "), hold: hold.join("\n"),
                 put_back: put_back.join("\n"), written: WRITTEN.join(" "))
  end
  private_class_method :init_script

  # Folders that the command needs, where this machine has them below a hidden one: a clone of this tree, or what
  # was built elsewhere.
  def self.kept(command, env)
    files = [*command, *env.values].grep(%r{\A/}).select { |path| File.exist?(path) }
    folders = [ROOT, *files.map { |path| File.directory?(path) ? path : File.dirname(path) }]
    folders = folders.map { |path| File.realpath(path) }
    hidden = folders.uniq.select { |path| WRITTEN.any? { |written| path.start_with?("#{written}/") } }
    hidden.reject { |path| hidden.any? { |around| path.start_with?("#{around}/") } }
  end
  private_class_method :kept
end
