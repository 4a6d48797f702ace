# frozen_string_literal: true

require_relative "account"
require_relative "balancer"
require_relative "events"
require_relative "machine"
require_relative "network"

# Runs scenarios, and prints tables.
class Laboratory
  # `machines`: what is special about each. `event`: the method of Events. Without one, ways to balance are compared.
  Scenario = Struct.new(:about, :machines, :loss, :event, keyword_init: true)

  EQUAL = Array.new(4) { {} }.freeze
  SCENARIOS = {
    "equal" => Scenario.new(about: "four equal machines", machines: EQUAL),
    "slow" => Scenario.new(about: "one of four at a quarter of the speed",
                           machines: [*EQUAL.first(3), { slowness: 4 }]),
    "sizes" => Scenario.new(about: "two machines, one with half and one with a quarter of their threads",
                            machines: [{}, {}, { workers: 1 }, { workers: 1, threads: 2 }]),
    "loss" => Scenario.new(about: "one of four loses 2 % of the packets", machines: EQUAL, loss: 2),
    "kill" => Scenario.new(about: "kill -9 of all processes of one", machines: EQUAL, event: :kill),
    "cut" => Scenario.new(about: "one without power, which neither answers nor refuses", machines: EQUAL, event: :cut),
    "restart" => Scenario.new(about: "rolling restarts, one after the other", machines: EQUAL, event: :restart),
    "upgrade" => Scenario.new(about: "hot restarts, one after the other", machines: EQUAL, event: :upgrade),
    "stop" => Scenario.new(about: "TERM and a new start, one after the other", machines: EQUAL, event: :stop)
  }.freeze
  COLUMNS = ["scenario", "balanced by", "p50, ms", "p99, ms", "requests", "failed", "requests by machine"].freeze

  def initialize(rate:, seconds:, rounds:, warm_up:)
    @rate = rate
    @seconds = seconds
    @rounds = rounds
    @warm_up = warm_up
    @network = Network.new
    @notes = []
  end

  def run(names)
    puts "#{@rate.round} requests a second.", "", "| #{COLUMNS.join(' | ')} |", "|#{' --- |' * COLUMNS.length}"
    names.each { |name| run_scenario(name, SCENARIOS.fetch(name)) }
    puts "", @notes unless @notes.empty?
  end

  private

  def run_scenario(name, scenario)
    machines = scenario.machines.each.with_index(1).map { |special, number| Machine.new(number, @network, **special) }
    machines.each(&:start).each(&:wait_until_ready)
    lose_packets(machines.last, scenario.loss) if scenario.loss
    scenario.event ? observe(name, machines, scenario.event) : compare(name, machines)
  ensure
    machines&.each(&:finish)
  end

  def lose_packets(machine, percent)
    how = @network.lose(machine.name, machine.address, percent)
    @notes << "- loss: packets are dropped by #{how}."
  end

  def compare(name, machines)
    accounts = Hash.new { |hash, way| hash[way] = [] }
    @rounds.times do |round|
      Balancer::WAYS.each_key do |way|
        accounts[way] << measure(machines, way, round) { sleep @seconds }
      end
    end
    accounts.each { |way, rounds| report(name, way, rounds) }
  end

  def observe(name, machines, event)
    events = Events.new(machines, @network)
    account = measure(machines, "printed", 0) do |balancer|
      sleep 2
      events.balancer = balancer
      events.public_send(event)
      sleep 4
    end
    report(name, "printed", [account])
    @notes.concat(events.notes(account).map { |note| "- #{name}: #{note}" })
  end

  def measure(machines, way, round)
    balancer = Balancer.new(machines, way).start
    Account.during(Network::BALANCER, Balancer::PORT, @rate, seed: round, warm_up: @warm_up) { yield balancer }
  ensure
    balancer&.stop
  end

  def report(name, way, accounts)
    times = [0.5, 0.99].map { |share| in_words(accounts.map { |account| account.percentile(share) }) }
    total = accounts.sum { |account| account.requests.length }
    failed = accounts.map(&:failures).reduce { |sum, one| sum.merge(one) { |_, a, b| a + b } }
    failed = failed.empty? ? "0" : failed.map { |kind, count| "#{count} × #{kind}" }.join(", ")
    by_machine = accounts.map(&:by_machine).reduce { |sum, one| sum.merge(one) { |_, a, b| a + b } }
    puts "| #{[name, way, *times, total, failed, by_machine.values.join(', ')].join(' | ')} |"
    $stdout.flush
  end

  # The median, with the smallest and the largest where there are several.
  def in_words(values)
    sorted = values.sort.map(&:round)
    median = sorted[(sorted.length - 1) / 2]
    sorted.length > 1 ? "#{median} (#{sorted.first}–#{sorted.last})" : median.to_s
  end
end
