# frozen_string_literal: true

require_relative "cast"
require_relative "checkpoints"
require_relative "inventory"
require_relative "restart_test_case"

# Each row of a matrix is a test: it brings a server to the step with a checkpoint, kills the victim, and releases the
# step. Then everything has to be as in an undisturbed server.
class KillMatrixTestCase < RestartTestCase
  # Most of the time is spent waiting.
  Minitest.parallel_executor = Minitest::Parallel::Executor.new(4)
  parallelize_me!

  WORKERS = 3
  CLIENTS = 2
  WITHIN = 20 # seconds
  LOOKS = 10 # with the same outcome: nothing changes any more
  ONCE = Mutex.new
  SERVING = %i[worker canary next_worker newcomer chosen].freeze # victims that may have started requests

  # A request for /held is not answered while there is a file of that name.
  HOLDING = <<~RUBY.freeze
    use(Class.new do
      def initialize(app) = @app = app

      def call(env)
        sleep 0.002 while env["PATH_INFO"] == "/held" && File.exist?(File.join(__dir__, "held"))
        @app.call(env)
      end
    end)
    #{CONFIG}
  RUBY

  # The process that serves clients, and the spawner if there is one: their deaths have the same effect.
  SPAWNERS = { highball: :spawner, next_highball: :next_spawner }.freeze
  HIGHBALLS = SPAWNERS.to_a.flatten.freeze

  # Defines tests from a table {scenario => {steps => {victim => outcome}}}. The outcome for `highball` itself, and for
  # its spawner, is `leaves_nothing` unless the table has another. The `usual` ones ([scenario, step, victim]) always
  # run, the others with `bin/test --full`.
  def self.matrix(table, usual:)
    rows = with_spawners(table.flat_map { |scenario, steps| rows_of(scenario, steps) })
    usual = with_spawners(usual)
    missing = usual - rows.map { |row| row.first(3) }
    raise ArgumentError, "not in the matrix: #{missing}" if missing.any?

    rows.each do |scenario, step, victim, outcome|
      next unless LEVEL == "full" || usual.include?([scenario, step, victim])

      define_method("test_#{scenario}_at_#{step}_without_#{victim}") { play(scenario, step, victim, outcome) }
    end
  end

  # [[scenario, step, victim, outcome], ...]
  def self.rows_of(scenario, rows)
    rows.flat_map do |steps, victims|
      outcomes = { highball: :leaves_nothing, **victims }.to_a
      steps.product(outcomes).map { |step, (victim, outcome)| [scenario, step, victim, outcome] }
    end
  end
  private_class_method :rows_of

  # With a row more for each whose victim has a spawner.
  def self.with_spawners(rows)
    return rows unless OwnProcesses.spawner?

    rows.flat_map do |scenario, step, victim, *outcome|
      [victim, SPAWNERS[victim]].compact.map { |one| [scenario, step, one, *outcome] }
    end
  end
  private_class_method :with_spawners

  def setup
    super
    @releases = [version(1, folder_with, HOLDING), version(2)]
    @current = File.join(folder_with, "current")
    @spool = OwnProcesses.let_use(folder_with)
    @checkpoints = Checkpoints.new(OwnProcesses.let_use(folder_with))
    @old = { workers: {} }
  end

  private

  def play(scenario, step, victim, outcome)
    @step = step
    @victim = victim
    @outcome = outcome
    release(@releases.first)
    send(scenario) { send(outcome) }
    at_rest if @server.running?
  end

  # --- a scenario: it brings a server to the step, kills the victim there, lets the server go on, and checks it

  def restart
    serve_with_checkpoints
    release(@releases.last)
    under_load do
      @server.signal("USR1")
      kill_at_the_step
      yield
    end
  end

  # --- outcomes

  def old = serves(1)

  def new = serves(2)

  def serves(generation = nil)
    serving = { "phase" => "serving", "generation" => generation }.compact
    wait_for("#{WORKERS} workers #{generation && "of generation #{generation}"}", within: WITHIN) do
      status = @server.running? && @server.port && @server.status
      status && status.slice(*serving.keys) == serving && settled?(status)
    end
    assert_equal 200, @server.get("/").status
  end

  def gives_up
    refute_predicate @server.wait, :success?
    assert_match(/the application did not boot.*killed by SIGKILL/m, @server.log)
    assert_empty @server.orphans
  end

  def drains
    assert_predicate @server.wait, :success?
    assert_empty @server.orphans
    assert_empty Dir.children(@spool)
  end

  def leaves_nothing
    @server.wait
    assert_empty @server.orphans
    assert_empty Dir.children(@spool)
    TCPServer.new("127.0.0.1", @server.port).close if @server.port
  end

  # --- parts of the outcomes

  # Every body goes by way of a spool file.
  # (Without looks at memory, for which an opener more may be needed just then.)
  def options = ["--spool-dir", @spool, "--body-memory", "0", "--memory-budget", "none"]

  def settings = { workers: WORKERS, env: @checkpoints.environment }

  def serve_with_checkpoints(step = @step)
    @server = serve(@current, *options, **settings)
    @old = Cast.old(@server)
    @checkpoints.ask(step)
  end

  # Clients send requests all the time. (If `highball` is the victim, they get no answers.)
  def under_load
    return yield if HIGHBALLS.include?(@victim)

    # If a restart is undone, clients get the old version again.
    allowed = @outcome == :new ? [] : [:went_back]
    load = KeepAliveLoad.during(@server, clients: CLIENTS, allowed: allowed) do |clients|
      yield
      clients.more(3)
    end
    failures = load.failures
    failures = failures.reject(&:lost_with_a_worker?) if SERVING.include?(@victim)
    assert_empty failures
  end

  # Replaces the current release by another one.
  def release(folder)
    FileUtils.ln_s(folder, "#{@current}.next")
    File.rename("#{@current}.next", @current)
  end

  def kill_at_the_step
    waiting = @checkpoints.wait_until_reached(@step)
    victim = Cast.new(@server, @old, waiting).pid_of(@victim)
    HighballServer.kill(victim)
    wait_for("the end of the #{@victim}") { !ProcessFacts.alive?(victim) }
    @checkpoints.release(@step)
  end

  # Requests that a worker had started are answered 502 when it dies, if they are not safe to repeat.
  def settled?(status)
    status.dig("mold", "state") == "booted" && status["workers"].length == WORKERS &&
      status["workers"].all? { |one| one["state"] == "serving" && one["generation"] == status["generation"] } &&
      status["restarts"].none? { |restart| %w[booting probing rolling queued].include?(restart["state"]) } &&
      %w[refork upgrade].all? { |what| [nil, "done", "failed"].include?(status.dig(what, "state")) }
  end

  # The death leaves nothing behind: no process, slot, descriptor, spool file or memory file.
  def at_rest
    wait_for("free slots") do
      status = @server.status
      status.values_at("queue", "connections").all?(&:zero?) && status["workers"].sum { |one| one["in_flight"] }.zero?
    end
    found = nil
    wait_for("the usual inventory") { (found = Inventory.of(@server)) == usual_inventory }
    assert_empty Dir.children(@spool)
  rescue Deadline::Missed
    assert_equal(*[usual_inventory, found].map { |inventory| JSON.pretty_generate(inventory) })
  end

  # The inventory of an undisturbed server.
  def usual_inventory
    ONCE.synchronize do
      @@usual_inventory ||= {} # rubocop:disable Style/ClassVars -- a server for each test would take long
      @@usual_inventory[kind_of_server] ||= begin
        server = serve(@releases.first, *options, **settings)
        wait_for("all of its workers") { settled?(server.status) }
        inventory_that_stays(server)
      end
    end
  end

  # Servers of a kind have the same inventory.
  def kind_of_server = nil

  # Looks several times, because the last request may still be open.
  def inventory_that_stays(server)
    looks = []
    wait_for("an inventory that stays") do
      last = looks.push(Inventory.of(server)).last(LOOKS)
      last.first if last.length == LOOKS && last.uniq.one?
    end
  end
end
