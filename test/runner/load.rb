# frozen_string_literal: true

require "etc"

# How many threads of this machine run or wait for a processor: the mean of the last seconds, by proc_loadavg(5). The
# load averages of that file are those of whole minutes, and count what waits for a disk as well.
class Load
  # What a look counts for. With five looks a second, half of what is known is then three seconds old at most.
  WEIGHT = 0.05
  # A job that has just begun is seen with the next looks. Until then it counts as what most jobs need.
  OF_A_JOB = 1.5

  def initialize
    @mean = 0.0
  end

  def look
    now = File.read("/proc/loadavg").split[3].to_i - 1 # without this process
    @mean += (now - @mean) * WEIGHT
  end

  def job_begins
    @mean += OF_A_JOB
  end

  # Whether another job would only slow down all that run now.
  def full? = @mean >= Etc.nprocessors * 2
end
