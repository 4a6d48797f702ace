# frozen_string_literal: true

require "json"
require "open3"
require_relative "../../support/tenants_test_case"

# Slow requests of applications of several users: root sees those of each application, and no tenant sees another's.
class TenantSlowRequestsTest < TenantsTestCase
  def app(name)
    { "config.ru" => "def #{name} = sleep(0.8)\n" \
                     "run ->(env) { #{name} if env['PATH_INFO'] == '/slow'; [200, {}, [Process.uid.to_s]] }\n" }
  end

  def test_root_sees_each_application_and_a_tenant_none
    top = "slow_request = '300ms'"
    server = serve_tenants(attacker_app(app("of_attacker")), victim_app(app("of_victim")), top: top)
    ask_attacker(server, "/slow")
    ask_victim(server, "/slow")
    wait_for("both reports") { %w[attacker victim].all? { |name| slow(name).include?("of_#{name}") } }
    refute_includes slow("attacker"), "of_victim"
    refute_includes slow("victim"), "of_attacker"
    become = ["setpriv", "--reuid=#{ATTACKER}", "--regid=#{Etc.getpwnam(ATTACKER).gid}", "--clear-groups", "--"]
    %w[attacker victim].each do |name|
      refute_match(/of_victim|of_attacker/, slow(name, through: become))
    end
  end

  private

  def slow(name, through: [])
    environment = HighballServer::ENVIRONMENT.merge(server_env)
    words = [*through, HighballServer::BINARY, "status", "--slow", name]
    Open3.capture2e(environment, "timeout", "60", *words, chdir: "/").first
  end
end
