# frozen_string_literal: true

require "English"
require "open3"
require "psych"
require_relative "../../support/e2e_test"
require_relative "../../support/agent_check"
require_relative "../../support/behind_web_servers"

# The configurations that `highball config` prints for several machines: for a balancer in front of them, and for
# programs that run Highball on them.
class MachinesConfigTest < E2ETest
  include AgentCheck
  include BehindWebServers

  DURATION = /\A\d+s\z/

  # The keys that Kamal documents (`kamal docs`), as far as they are used, with examples. Kamal refuses other keys, and
  # values of other types than those of its examples. A text may also be a number there.
  KAMAL = {
    "service" => "blog", "image" => "me/blog", "deploy_timeout" => 30, "drain_timeout" => 30,
    "servers" => { "web" => { "hosts" => ["10.0.0.5"], "options" => { "memory" => "2g" } } },
    "boot" => { "limit" => "25%", "wait" => 10 },
    "proxy" => { "host" => "blog.example", "app_port" => 3000,
                 "healthcheck" => { "interval" => 3, "path" => "/health", "timeout" => 3 } },
    "registry" => { "username" => "me", "password" => ["SECRET"] },
    "env" => { "secret" => ["SECRET"], "clear" => {
      "HIGHBALL_BIND" => "0.0.0.0:3000", "HIGHBALL_DRAIN_TIMEOUT" => "30s", "WEB_CONCURRENCY" => "2",
      "RAILS_MAX_THREADS" => "3"
    } },
    "builder" => { "arch" => "amd64" }
  }.freeze

  def setup
    super
    @app = folder_with("blog/config.ru" => "run ->(env) { [200, {}, ['ok']] }\n")
    @options = [File.join(@app, "blog"), "-w", "2"]
  end

  def test_kubernetes_objects_fit_together
    objects = kubernetes_objects
    assert_equal %w[Deployment Service PodDisruptionBudget HorizontalPodAutoscaler], objects.keys
    deployment, service, budget, autoscaler = objects.values.map { |object| object["spec"] }
    labels = deployment.dig("template", "metadata", "labels")
    selectors = [deployment.dig("selector", "matchLabels"), service["selector"], budget.dig("selector", "matchLabels")]
    assert_equal [labels], selectors.uniq
    assert_equal({ "apiVersion" => "apps/v1", "kind" => "Deployment", "name" => "blog" }, autoscaler["scaleTargetRef"])
    assert_equal(["blog"], objects.values.map { |object| object.dig("metadata", "name") }.uniq)
    refute_includes deployment, "replicas", "the autoscaler sets them"
    assert_equal "http", service.dig("ports", 0, "targetPort")
  end

  def test_kubernetes_asks_what_highball_answers
    pod = kubernetes_objects["Deployment"].dig("spec", "template", "spec")
    container = pod.dig("containers", 0)
    ports = container["ports"].to_h { |port| port.values_at("name", "containerPort") }
    probes = container.values_at("startupProbe", "readinessProbe", "livenessProbe").map { |probe| probe["httpGet"] }
    assert_equal(["admin"], probes.map { |get| get["port"] }.uniq)
    refute_includes container, "lifecycle"
    refute container.key?("command") || container.key?("args"), "bin/docker-entrypoint prepares no database for them"
    variables = container["env"].to_h { |variable| variable.values_at("name", "value") }
    assert_operator pod["terminationGracePeriodSeconds"], :>, stop_seconds(variables)
    serve_as_printed(variables, ports["http"], ports["admin"]) do |admin_port|
      probes.each { |get| assert_equal 200, ask(admin_port, get["path"]) }
    end
  end

  # Against the schemas that Kubernetes publishes, which this program brings with it.
  def test_kubernetes_objects_are_valid
    needs("kubernetes-validate")
    path = File.join(folder_with, "blog.yaml")
    File.write(path, printed_for("kubernetes", *@options))
    %w[1.25 1.36].each do |version|
      output = IO.popen(["kubernetes-validate", "--strict", "-k", version, path], err: %i[child out], &:read)
      assert_predicate $CHILD_STATUS, :success?, output
      assert_equal 4, output.scan(" passed ").length, output
    end
  end

  def test_kamal
    deploy = Psych.safe_load(printed_for("kamal", *@options, "--machines", "10.0.0.5,::1", "--host", "*.example"))
    assert_equal %w[service image servers boot proxy deploy_timeout drain_timeout registry env builder], deploy.keys
    assert_nil problem_with_kamal(deploy, KAMAL)
    web = deploy.dig("servers", "web")
    assert_equal %w[10.0.0.5 ::1], web["hosts"]
    assert_equal({ "limit" => 1, "wait" => 5 }, deploy["boot"])
    assert_equal ["*.example", 3000], deploy["proxy"].values_at("host", "app_port")
    assert_operator deploy["deploy_timeout"], :>=, 60
    serve_as_printed(deploy.dig("env", "clear").transform_values(&:to_s), 3000, nil)
  end

  def test_nomad
    job = printed_for("nomad", *@options)
    assert_equal job.count("{"), job.count("}")
    refute_match(/^ *(?:args|command) *=/, job)
    variables = job[/env \{(.*?)^\s*\}/m, 1].scan(/^ *(\w+) *= "([^"]*)"/).to_h
    assert_operator job[/kill_timeout = "(\d+)s"/, 1].to_i, :>, stop_seconds(variables)
    assert_equal({ "http" => 3000, "admin" => 9394, "agent" => 9395 },
                 job.scan(/port "(\w+)" \{ to = (\d+) \}/).to_h.transform_values(&:to_i))
    serve_as_printed(variables, 3000, 9394) do |admin_port, agent_port|
      assert_equal 200, ask(admin_port, "/readyz")
      assert_equal "up ready 100%", ask_agent("\n", port: agent_port)
    end
  end

  # The parts that Nomad's documentation names, in the places that it names.
  def test_nomad_jobs_have_the_parts_that_are_documented
    job = parse_hcl(printed_for("nomad", *@options)) or skip "hcl2tojson is not installed"
    blog = job.dig("job", 0, "blog")
    group = blog.dig("group", 0, "web")
    task = group.dig("task", 0, "highball")
    assert_equal %w[group type update], blog.keys.sort
    assert_equal %w[constraint count network service task], group.keys.sort
    assert_equal %w[config driver env kill_signal kill_timeout resources template], task.keys.sort
    assert_equal %w[http admin agent], task.dig("config", 0, "ports")
    assert_equal(%w[admin agent http], group["network"].flat_map { |network| network["port"].flat_map(&:keys) }.sort)
  end

  def test_every_configuration_of_haproxy_is_accepted
    needs("haproxy")
    printed = printed_for("haproxy", *@options, "--machines", "10.0.0.5,[2001:db8::5]:4000,::1,127.0.0.1")
    assert_nil WebServer.problem("haproxy", printed)
    assert_equal 4, printed.scan(/^    server /).length
  end

  def test_machines_that_are_none
    ["10.0.0.5,", "a b", "a\n    server evil 192.0.2.1:80", "a,a", "\"a"].each do |machines|
      output = highball_fails("config", "haproxy", *@options, "--machines", machines)
      assert_match(/--machines: .* (?:is not a host name or an IP address|is there twice)/m, output)
    end
  end

  private

  def kubernetes_objects
    objects = Psych.parse_stream(printed_for("kubernetes", *@options)).to_ruby
    objects.to_h { |object| [object["kind"], object] }
  end

  # The first key or value that Kamal would refuse; nil: there is none.
  def problem_with_kamal(value, example, key = "deploy.yml")
    fits = example.is_a?(String) ? [String, Integer].include?(value.class) : value.is_a?(example.class)
    return "#{key}: #{value.inspect}" unless fits
    return value.filter_map { |one| problem_with_kamal(one, example.first, key) }.first if example.is_a?(Array)
    return unless example.is_a?(Hash)

    unknown = value.keys - example.keys
    return "#{key}: unknown: #{unknown.join(', ')}" if unknown.any?

    value.filter_map { |name, one| problem_with_kamal(one, example.fetch(name), "#{key}/#{name}") }.first
  end

  # Highball with these variables, on other ports of the loopback network, and without waiting at its end.
  def serve_as_printed(variables, port, admin_port)
    ports = Array.new(3) { free_port }
    others = [port, admin_port, 9395].zip(ports).to_h { |old, new| ["0.0.0.0:#{old}", "127.0.0.1:#{new}"] }
    environment = variables.transform_values { |value| others.fetch(value, value) }
    assert_equal 3, environment.fetch("RAILS_MAX_THREADS").to_i
    environment["HIGHBALL_DRAIN_GRACE"] = "0s"
    server = serve(@options.first, command: [HighballServer::BINARY, @options.first], env: environment)
    assert_equal 200, server.get("/").status
    assert_equal 2, server.status["workers_wanted"]
    yield ports[1], ports[2] if block_given?
  ensure
    server&.stop
  end

  def stop_seconds(variables)
    %w[HIGHBALL_DRAIN_GRACE HIGHBALL_DRAIN_TIMEOUT].sum do |name|
      assert_match DURATION, variables.fetch(name)
      variables[name].to_i
    end
  end

  def ask(port, path)
    HttpConnection.tcp(port).use { |connection| connection.get(path, { "Host" => "127.0.0.1:#{port}" }).status }
  end

  # By HashiCorp's syntax, where a parser is installed: the job, as a hash.
  def parse_hcl(text)
    return unless installed?("hcl2tojson")

    path = File.join(folder_with, "blog.nomad.hcl")
    File.write(path, text)
    output, errors, ended = Open3.capture3("hcl2tojson", path)
    assert_predicate ended, :success?, errors
    JSON.parse(output)
  end
end
