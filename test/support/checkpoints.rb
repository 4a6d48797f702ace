# frozen_string_literal: true

require "fileutils"
require_relative "deadline"

# The folder in which a test makes the processes of a server wait at a step (CONTRIBUTING.md, "Checkpoints").
class Checkpoints
  attr_reader :folder

  def initialize(folder)
    @folder = folder
  end

  # The variables for a server.
  def environment = { "HIGHBALL_CHECKPOINTS" => folder }

  # From now on, processes wait at this step.
  def ask(step)
    FileUtils.rm_f("#{path(step)}.reached")
    FileUtils.touch(path(step))
  end

  # The pid of the process that waits there.
  def wait_until_reached(step, within: Deadline::WITHIN)
    Deadline.wait("a process at #{step}", within: within) { File.exist?("#{path(step)}.reached") }
    File.read("#{path(step)}.reached").to_i
  end

  def release(step) = FileUtils.rm_f(path(step))

  private

  def path(step) = File.join(folder, step)
end
