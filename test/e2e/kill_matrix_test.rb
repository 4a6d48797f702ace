# frozen_string_literal: true

require "pp"
require_relative "../support/cast"
require_relative "../support/checkpoints"
require_relative "../support/inventory"
require_relative "../support/restart_test_case"

# kill -9 of every process that there is, at every step of everything that a server does. The steps are forced by
# checkpoints. Each row of the matrix is a test: a server is brought to the step, the victim is killed, and the step is
# released. Then everything has to be as in a server to which nothing has happened.
class KillMatrixTest < RestartTestCase
  # Most of the time is spent waiting.
  Minitest.parallel_executor = Minitest::Parallel::Executor.new(4)
  parallelize_me!

  WORKERS = 3
  CLIENTS = 2
  WITHIN = 20 # seconds
  ONCE = Mutex.new
  BOOT = %w[mold.load_highball mold.find_app mold.load_bundler mold.load_app mold.prepare_fork mold.booted].freeze
  OLD_ONES = { mold: :new, worker: :new }.freeze
  NEW_ONES = { next_mold: :old, canary: :old }.freeze

  # {scenario => {steps => {victim => outcome}}}. `newcomer` is the worker that waits at the step. The same happens
  # everywhere to `highball` itself, so it does not stand here.
  MATRIX = {
    start: {
      # The first boot has to succeed: otherwise the server says what failed, and ends.
      BOOT => { mold: :gives_up },
      %w[fork.intermediate fork.worker_forked] => { intermediate: :serves, mold: :serves },
      %w[worker.born worker.introduced worker.ready] => { newcomer: :serves, mold: :serves }
    },
    restart: {
      [*BOOT, "restart.booted"] => { next_mold: :old, **OLD_ONES },
      %w[fork.intermediate fork.worker_forked] => { intermediate: :old, next_mold: :old, **OLD_ONES },
      %w[worker.born worker.introduced] => { newcomer: :old, next_mold: :old, **OLD_ONES },
      %w[restart.canary_forked restart.canary_ready restart.admitted restart.replaced] => { **NEW_ONES, **OLD_ONES },
      # Every new one serves by then: whose death is noticed before that is seen takes the restart back.
      %w[restart.last_retired] => { next_mold: :serves, canary: :serves, **OLD_ONES }
    },
    failing_restart: {
      %w[restart.undoing] => { canary: :old, mold: :old, worker: :old }
    },
    drain: {
      %w[drain.begun drain.front_drained drain.workers_told] => { worker: :drains, mold: :drains },
      %w[worker.draining worker.exiting] => { newcomer: :drains, mold: :drains }
    }
  }.freeze

  MATRIX.each do |scenario, rows|
    rows.each do |steps, victims|
      steps.product([*victims, %i[highball leaves_nothing]]).each do |step, (victim, outcome)|
        define_method("test_#{scenario}_at_#{step}_without_#{victim}") { play(scenario, step, victim, outcome) }
      end
    end
  end

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

  def setup
    super
    @releases = [version(1, folder_with, HOLDING), version(2)]
    @current = File.join(folder_with, "current")
    @spool = folder_with
    @checkpoints = Checkpoints.new(folder_with)
    @old = {}
  end

  private

  def play(scenario, step, victim, outcome)
    @step = step
    @victim = victim
    release(@releases.first)
    send(scenario) { send(outcome) }
    at_rest if @server.running?
  end

  # --- scenarios: each brings a server to the step, kills the victim there, lets it go on, and looks what becomes of it

  def start
    @checkpoints.ask(@step)
    @server = HighballServer.new(@current, *options, **settings)
    @servers << @server
    kill_at_the_step
    yield
  end

  def restart(&outcome)
    serve_with_checkpoints
    release(@releases.last)
    return restart_until_killed(&outcome) if @victim == :highball

    load = KeepAliveLoad.during(@server, clients: CLIENTS) do |clients|
      restart_until_killed(&outcome)
      clients.more(3)
    end
    assert_empty load.failures.grep_v(died_with_a_worker)
  end

  # The worker after the canary cannot start.
  def failing_restart(&outcome)
    number = (WORKERS * 2) - 1
    version(2, @releases.last, "Highball.after_fork { |number| raise 'no luck' if number > #{number} }\n#{CONFIG}")
    restart(&outcome)
  end

  def restart_until_killed
    @server.signal("USR1")
    kill_at_the_step
    yield
  end

  # One request is under way meanwhile, by the worker that is the victim.
  def drain
    held = FileUtils.touch(File.join(@releases.first, "held"))
    serve_with_checkpoints
    asking = ask_for_what_is_held
    @server.signal("TERM")
    FileUtils.rm(held) unless @step == "drain.begun"
    kill_at_the_step
    FileUtils.rm_f(held)
    yield
    assert_equal 200, asking.value unless @victim == :highball
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

  # --- the parts of these

  # Every body goes by way of a spool file.
  def options = ["--spool-dir", @spool, "--body-memory", "0"]

  def settings = { workers: WORKERS, env: @checkpoints.environment }

  def serve_with_checkpoints
    @server = serve(@current, *options, **settings)
    @old = { mold: @server.mold_pid, worker: @server.worker_pids.max, others: @server.worker_pids }
    @checkpoints.ask(@step)
  end

  # Puts another release in the place of the current one.
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

  # Makes the worker that has it the victim among the old ones.
  def ask_for_what_is_held
    asking = Thread.new { @server.get("/held", within: 60).status }
    asking.report_on_exception = false
    busy = wait_for("the request") { @server.status["workers"].find { |worker| worker["in_flight"] == 1 } }
    @old[:worker] = busy["pid"]
    asking
  end

  # What a worker had begun is answered 502 when it dies, if it is not safe to repeat.
  def died_with_a_worker
    %i[worker canary newcomer].include?(@victim) ? /\A502 / : /\A\z/
  end

  def settled?(status)
    status.dig("mold", "state") == "booted" && status["workers"].length == WORKERS &&
      status["workers"].all? { |one| one["state"] == "serving" && one["generation"] == status["generation"] } &&
      status["restarts"].none? { |restart| %w[booting probing rolling queued].include?(restart["state"]) }
  end

  # Nothing is left of what happened: not a process, a slot, a descriptor, a spool file or a memory file.
  def at_rest
    wait_for("free slots") do
      status = @server.status
      status.values_at("queue", "connections").all?(&:zero?) && status["workers"].sum { |one| one["in_flight"] }.zero?
    end
    found = nil
    wait_for("the usual inventory") { (found = Inventory.of(@server)) == usual_inventory }
    assert_empty Dir.children(@spool)
  rescue Deadline::Missed
    assert_equal usual_inventory.pretty_inspect, found.pretty_inspect
  end

  # That of a server to which nothing has happened.
  def usual_inventory
    ONCE.synchronize do
      @@usual_inventory ||= begin # rubocop:disable Style/ClassVars -- a server for each test would take long
        server = serve(@releases.first, *options, **settings)
        wait_for("an inventory") { Inventory.of(server) }
      end
    end
  end
end
