# frozen_string_literal: true

require_relative "../../support/spawner_test_case"

# The memory of a tenant's workers is limited from outside, whatever the tenant does, and at no other tenant's cost.
class TenantMemoryTest < SpawnerTestCase
  # `/keep?50` keeps 50 MiB; `/hide` keeps others from looking into the process (PR_SET_DUMPABLE).
  APP = <<~'RUBY'
    require "fiddle"
    KEPT = []
    run lambda { |env|
      KEPT << ("x" * (env["QUERY_STRING"].to_i << 20)) if env["PATH_INFO"] == "/keep"
      if env["PATH_INFO"] == "/hide"
        types = [Fiddle::TYPE_INT] + ([Fiddle::TYPE_LONG] * 4)
        Fiddle::Function.new(Fiddle.dlopen(nil)["prctl"], types, Fiddle::TYPE_INT).call(4, 0, 0, 0, 0)
      end
      File.write("/proc/self/oom_score_adj", "0") if env["PATH_INFO"] == "/lower_score"
      [200, {}, [Process.pid.to_s]]
    }
  RUBY
  LIMITED = "memory_limit = '100m'\n"

  def test_a_worker_over_its_limit_is_replaced
    server = serve_tenants(attacker_app("config.ru" => APP), entries: { ATTACKER => LIMITED, VICTIM => LIMITED })
    victim = victims_worker(server)
    assert_replaced(server) { ask_attacker(server, "/keep?120") }
    assert_equal victim, victims_worker(server)
    assert_victim_serves(server)
  end

  def test_a_worker_that_hides_counts_as_well
    server = serve_tenants(attacker_app("config.ru" => APP), entries: { ATTACKER => LIMITED })
    assert_replaced(server) do
      ask_attacker(server, "/hide")
      ask_attacker(server, "/keep?120")
    end
  end

  def test_a_stopped_opener_hides_nothing
    server = serve_tenants(attacker_app("config.ru" => APP), entries: { ATTACKER => LIMITED, VICTIM => LIMITED })
    wait_for("the attacker's opener", within: 30) { openers_of(server, ATTACKER).any? }
    stop_processes(openers_of(server, ATTACKER))
    assert_replaced(server) { ask_attacker(server, "/keep?120") }
    assert_victim_serves(server)
  end

  def test_a_tenant_over_its_budget
    server = serve_tenants(attacker_app("config.ru" => APP), entries: { ATTACKER => "memory_budget = '150m'\n" })
    victim = victims_worker(server)
    assert_replaced(server) { ask_attacker(server, "/keep?160") }
    assert_match(/limit=memory_budget/, server.log)
    assert_equal victim, victims_worker(server)
  end

  # The tenant's file may limit workers, but not raise what the tenant may have in all.
  def test_a_tenant_does_not_raise_its_budget
    files = { "config.ru" => APP, "config/highball.toml" => "memory_budget = 'none'\n" }
    server = serve_tenants(attacker_app(files))
    assert_match(/`memory_budget` decides what Highball does with its own rights/, server.log)
    refute_equal 200, ask_attacker(server).status
    assert_victim_serves(server)
  end

  def test_a_tenant_does_not_lower_its_score_below_the_servers
    server = serve_tenants(attacker_app("config.ru" => APP))
    pid = ask_attacker(server).body.to_i
    score = ->(of) { File.read("/proc/#{of}/oom_score_adj").to_i }
    assert_equal 200, score[pid] - score[front_of(server)]
    skip "root may not set limits here (CAP_SYS_RESOURCE)" unless sets_limits?
    ask_attacker(server, "/lower_score")
    assert_operator score[pid], :>, score[front_of(server)]
  end

  private

  # Without this capability, root sets no minimum for others.
  def sets_limits?
    File.read("/proc/self/status")[/^CapEff:\s*(\h+)/, 1].hex[24] == 1
  end

  def assert_replaced(server)
    old = ask_attacker(server).body
    yield
    wait_for("another worker", within: 30) { ask_attacker(server).body != old }
    assert_match(/which uses too much memory/, server.log)
  end
end
