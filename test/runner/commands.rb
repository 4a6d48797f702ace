# frozen_string_literal: true

require "shellwords"
require_relative "tree"

# What steps do: run commands, install packages, run cargo.
module Commands
  POLICY = "/usr/sbin/policy-rc.d"
  SET_ASIDE = "#{POLICY}.before-highball-test".freeze
  # The workspace of the benchmark has the profiles of the server.
  BENCH = %w[--config Cargo.toml --manifest-path bench/Cargo.toml].freeze

  # Runs a command, and ends this step if it fails.
  def sh(*command, env: {}, chdir: ".")
    system(env, *command, chdir: chdir) or abort "failed: #{command.shelljoin}"
  end

  def as_root(*command) = sh(*("sudo" unless Tree::IS_ROOT), *command)

  # What a command prints; nothing if there is no such command.
  def output_of(*command)
    IO.popen(command, err: File::NULL, &:read).chomp
  rescue Errno::ENOENT
    ""
  end

  def command?(name) = ENV.fetch("PATH").split(":").any? { |folder| File.executable?(File.join(folder, name)) }

  # Installs packages that are missing, as far as this Debian has them. Redmine's package needs Debian's Bundler: a
  # newer one asks packages for the folders of gems.
  def install(*packages)
    bundler = output_of("apt-cache", "policy", "ruby-bundler")[/^  Candidate: ([\d.]+)/, 1]
    sh "bin/setup", "--only-packages", *packages, env: { "BUNDLER_VERSION" => bundler }
  end

  def installed?(name) = output_of("dpkg-query", "--show", "--showformat=${db:Status-Abbrev}", name).start_with?("ii")

  # Installs packages with services, and starts no service: tests run what they need themselves.
  def install_services(*packages)
    return if packages.all? { |package| installed?(package) } || !command?("dpkg-query")

    begin
      restore_policy if File.exist?(SET_ASIDE) # left by a run that was killed
      as_root "mv", POLICY, SET_ASIDE if File.exist?(POLICY)
      forbid_services
      install(*packages)
    ensure
      restore_policy
    end
  end

  # Forbids packages to start services, in the system below this folder; 101 is "action forbidden by policy".
  def forbid_services(root = "")
    as_root "sh", "-c", 'printf "#!/bin/sh\nexit 101\n" >"$0" && chmod 755 "$0"', root + POLICY
  end

  def restore_policy = as_root(*(File.exist?(SET_ASIDE) ? ["mv", SET_ASIDE] : %w[rm -f]), POLICY)

  # Cargo with the profile of the server, so that no crate is compiled with other settings again.
  def cargo(command, *arguments, env: {}) = sh("cargo", command, "--profile", Tree::PROFILE, *arguments, env: env)

  def cargo_test(*arguments, env: {}) = cargo("test", "--no-fail-fast", *arguments, env: env)

  # Installs programs that Python's registry has into a folder of the cache: those in test/runner/NAME.txt.
  def install_python(name, *options)
    install "python3-venv"
    folder = File.join(Tree::CACHE, name)
    sh "/usr/bin/python3", "-m", "venv", folder
    sh "#{folder}/bin/pip", "install", "--quiet", *options, "--require-hashes", "-r", "test/runner/#{name}.txt"
  end

  # Installs what a folder of test/runner locks, from npm. npm writes `.package-lock.json` when it has finished.
  def install_javascript(name)
    folder = File.join(Tree::CACHE, name)
    files = %w[package.json package-lock.json].map { |file| "test/runner/#{name}/#{file}" }
    is_same = files.map { |file| [file, "#{folder}/#{File.basename(file)}"] }.all? do |file, copy|
      File.exist?(copy) && FileUtils.identical?(file, copy)
    end
    return if is_same && File.exist?("#{folder}/node_modules/.package-lock.json")

    install "npm"
    FileUtils.mkdir_p(folder)
    FileUtils.cp(files, folder)
    sh "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", chdir: folder
  end
end
