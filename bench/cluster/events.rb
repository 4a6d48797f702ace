# frozen_string_literal: true

require_relative "machine"

# What happens to machines under load, and what was noticed of it.
class Events
  # A machine that was stopped: times in seconds since 1970, and the number of requests that HAProxy sent to it after
  # TERM, until it had turned away, and afterwards.
  Stop = Struct.new(:machine, :term_at, :turned_away_at, :stopped_at, :until_turned_away, :afterwards)

  attr_writer :balancer

  def initialize(machines, network)
    @machines = machines
    @network = network
    @stops = []
  end

  def kill
    @gone = @machines.last
    at = clock
    @gone.kill
    @gone_at = at..clock
  end

  def cut
    @gone = @machines.last
    @gone_at = clock..clock
    @network.cut(@gone.name)
    sleep 15 # all that HAProxy needs to notice, also of connections that are quiet
  end

  def restart = @machines.each(&:restart)
  def upgrade = @machines.each(&:upgrade)

  # One after the other, as a deploy does.
  def stop
    @machines.each do |machine|
      @stops << stop_one(machine)
      machine.start.wait_until_ready
      Deadline.wait("the balancer to find #{machine.name}", within: 30) { state(machine).status == "UP" }
    end
  end

  # Lines about it, with the clients' account.
  def notes(account)
    @sent = @balancer.sent
    [*(lost(account) if @gone), *@stops.map { |stop| stop_in_words(stop) }, *rescued]
  end

  private

  def clock = Process.clock_gettime(Process::CLOCK_REALTIME)

  def state(machine) = @balancer.states.fetch(machine.name)

  # Looks at HAProxy's counter of requests to the machine.
  def stop_one(machine)
    before = state(machine).requests
    stop = Stop.new(machine.name, clock)
    machine.stop do
      now = state(machine)
      if stop.turned_away_at.nil? && now.status != "UP"
        stop.turned_away_at = clock
        stop.until_turned_away = now.requests - before
      end
      stop.stopped_at ||= clock if machine.stopped_accepting?
      stop.afterwards = now.requests - before - stop.until_turned_away.to_i
    end
    stop
  end

  def stop_in_words(stop)
    last = @sent.select { |one| one.server == stop.machine && one.sent_at <= stop.stopped_at }.map(&:sent_at).max
    format("%<machine>s got its last request %<last>.1f s after TERM, and stopped accepting after %<stopped>.1f s: " \
           "%<before>d requests came in between TERM and HAProxy's `drain`, %<afterwards>d later",
           machine: stop.machine, last: last - stop.term_at, stopped: stop.stopped_at - stop.term_at,
           before: stop.until_turned_away, afterwards: stop.afterwards)
  end

  # Requests that failed because the machine is gone.
  def lost(account)
    before, after = account.failed.partition { |request| request.due <= @gone_at.end }
    "#{before.length} requests failed that were under way when #{@gone.name} went, and #{after.length} later ones"
  end

  def rescued
    retried = @sent.reject { |one| one.retries == "0" }
    ["#{retried.length} requests were sent again to another machine"] if retried.any?
  end
end
