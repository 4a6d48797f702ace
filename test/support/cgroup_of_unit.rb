# frozen_string_literal: true

require "fileutils"
require "securerandom"

# A cgroup of version 2 for one server, as systemd makes one for a unit with `Delegate=yes`. Only root can make one.
class CgroupOfUnit
  MOUNT = "/sys/fs/cgroup"
  CONTROLLERS = %w[cpu memory].freeze

  # Why there can be none with limits on this machine, if so.
  def self.why_not
    return "needs root" unless Process.uid.zero?

    file = "#{MOUNT}/cgroup.controllers"
    missing = CONTROLLERS - (File.exist?(file) ? File.read(file).split : [])
    "version 2 of cgroups has no #{missing.join(' and ')} here" unless missing.empty?
  end

  attr_reader :folder

  def initialize
    CONTROLLERS.each { |name| File.write("#{MOUNT}/cgroup.subtree_control", "+#{name}") }
    @folder = "#{MOUNT}/highball-test-#{SecureRandom.hex(4)}"
    Dir.mkdir(@folder)
  end

  # A command line that runs another one in it. As a unit that is started again, it has no controllers for others then.
  def through
    enter = "echo '-cpu -memory' > #{@folder}/cgroup.subtree_control; echo $$ > #{@folder}/cgroup.procs"
    ["sh", "-c", "#{enter} && exec \"$@\"", "sh"]
  end

  # Gives it to a user, as with `User=`.
  def give_to(user)
    files = %w[cgroup.procs cgroup.subtree_control cgroup.threads].map { |file| path(file) }
    FileUtils.chown(user, nil, [@folder, *files])
  end

  # The names of the cgroups in it.
  def children = Dir.children(@folder).select { |name| File.directory?(path(name)) }.sort

  # The one of the application in this folder.
  def of_app(folder)
    name = folder.delete_prefix("/").gsub(%r{[^a-zA-Z0-9_./]}) { |byte| format('\x%02x', byte.ord) }.tr("/", "-")
    "highball.app-#{name}"
  end

  def path(*names) = File.join(@folder, *names)
  def read(*names) = File.read(path(*names)).strip
  def pids(child) = read(child, "cgroup.procs").split.map(&:to_i)
  def number(child, file, name) = read(child, file)[/^#{name} (\d+)/, 1].to_i

  def remove
    children.each { |child| Dir.rmdir(path(child)) }
    Dir.rmdir(@folder)
  end
end
