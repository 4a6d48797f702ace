# frozen_string_literal: true

require_relative "commands"

# A Debian 13 in a folder of the cache, with a copy of the sources: each Ruby needs an extension built for it, and each
# Rails its own files.
module Debian13
  extend Commands

  ROOT = File.join(Tree::CACHE, "trixie")
  TARGET = "/var/cache/highball/target"
  # Machines behind a proxy may trust authorities that a new Debian does not know.
  AUTHORITIES = "/var/cache/highball/authorities.pem"
  LEFT_OUT = %w[./target ./bench/target ./fuzz/target highball_ext.so* *.sqlite3* ./examples/*/log/*
                ./examples/*/tmp/* ./examples/*/storage/*].freeze
  # Mounts (with /run and /dev/shm) and processes are in separate namespaces: they end with it.
  ENTER = <<~'SH'
    trixie=$1
    shift
    mount -t proc proc "$trixie/proc"
    mount -t tmpfs -o mode=755 tmpfs "$trixie/run"
    mount --rbind /sys "$trixie/sys"
    mount --rbind /dev "$trixie/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$trixie/dev/shm"
    exec chroot "$trixie" /usr/bin/env -i "$@"
  SH

  module_function

  # The command that runs this one in its copy of the sources.
  def command(words)
    enter = %w[unshare --mount --pid --fork --kill-child --propagation private bash -euc] + [ENTER, "debian13", ROOT]
    variables = environment.compact.map { |name, value| "#{name}=#{value}" }
    # The shell stays process 1, which gets orphans and ignores signals; a test would be surprised by both.
    shell = ["sh", "-euc", 'cd /highball; "$@"; exit 0', "sh"]
    [*("sudo" unless Tree::IS_ROOT), *enter, *variables, *shell, *words]
  end

  def step(name) = sh(*command(["bin/test", "--step", name]))

  # Makes it. It gets its final name only when it is complete.
  def make
    return if File.directory?(ROOT)

    install "debootstrap"
    as_root "rm", "-rf", "--one-file-system", "#{ROOT}.new"
    as_root "mkdir", "-p", "#{ROOT}.new"
    as_root "env", "TMPDIR=#{ROOT}.new", "ruby", "-Itest", "-rsupport/clean_debian",
            "-e", 'File.rename(CleanDebian.new("trixie").root, ARGV.first)', ROOT
    as_root "rmdir", "#{ROOT}.new"
  end

  def copy_tree
    into = File.join(ROOT, "highball")
    as_root "mkdir", "-p", into, "#{ROOT}/var/cache/highball"
    as_root "find", into, "-mindepth", "1", "-delete"
    as_root "bash", "-euo", "pipefail", "-c",
            'tar --create --exclude-vcs "$@" . | tar --extract --no-same-owner --directory "$0"',
            into, *LEFT_OUT.map { |path| "--exclude=#{path}" }
    as_root "cp", "/etc/resolv.conf", "#{ROOT}/etc/resolv.conf"
    as_root "cp", "/etc/ssl/certs/ca-certificates.crt", "#{ROOT}#{AUTHORITIES}"
    as_root "sh", "-c", 'echo "127.0.0.1 localhost" >"$0"', "#{ROOT}/etc/hosts"
    forbid_services(ROOT)
  end

  # Puts the server of this tree, and what measures it, where the Debian 13 would build them. Whether they run there.
  def lend_server
    into = File.join(TARGET, Tree::PROFILE)
    programs = %w[highball highball-bench highball-floor].map { |name| File.join(Tree::TARGET, Tree::PROFILE, name) }
    as_root "mkdir", "-p", ROOT + into
    as_root "cp", "--remove-destination", *programs, ROOT + into
    system(*command([File.join(into, "highball"), "--version"]))
  end

  def environment
    { "HOME" => "/root", "PATH" => "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR" => "/tmp", "LANG" => "C.UTF-8",
      "SSL_CERT_FILE" => AUTHORITIES, "CARGO_HTTP_CAINFO" => AUTHORITIES, "CARGO_HOME" => "/var/cache/highball/cargo",
      "CARGO_TARGET_DIR" => TARGET, "HIGHBALL_BIN" => File.join(TARGET, Tree::PROFILE, "highball"),
      "HIGHBALL_LIB" => "/highball/lib", "HIGHBALL_PROFILE" => Tree::PROFILE, "HIGHBALL_TEST_LEVEL" => Tree.level,
      "http_proxy" => ENV.fetch("http_proxy", nil), "https_proxy" => ENV.fetch("https_proxy", nil) }
  end
end
