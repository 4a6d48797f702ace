# {name}: Highball with Nomad.
#
# How to begin      nomad job validate {name}.nomad.hcl && nomad job run {name}.nomad.hcl
# How to try it     nomad job status {name}
# New code          change the image, and nomad job run {name}.nomad.hcl
#
# Replace the image, and write the variables of the application to Nomad:
#                   nomad var put nomad/jobs/{name} SECRET_KEY_BASE=... DATABASE_URL=...

job "{name}" {
  type = "service"

  # One after the other. Nomad returns to the old version if the new one does not become healthy.
  update {
    max_parallel      = 1
    health_check      = "checks"
    min_healthy_time  = "5s"
    healthy_deadline  = "{boot_seconds}s"
    progress_deadline = "0s"
    auto_revert       = true
  }

  group "web" {
    count = 2

    # On different machines.
    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }

    network {
      port "http" { to = {port} }
      port "admin" { to = {admin_port} }
      port "agent" { to = {agent_port} }
    }

    service {
      name     = "{name}"
      port     = "http"
      provider = "nomad"

      # No request while it cannot answer: it boots, is stuck, or stops.
      check {
        name     = "ready"
        type     = "http"
        port     = "admin"
        path     = "/readyz"
        interval = "2s"
        timeout  = "2s"
      }
    }

    task "highball" {
      driver = "docker"

      config {
        image = "registry.example.com/{name}:1"
        ports = ["http", "admin", "agent"]
      }

      # No `command` or `args`: the image's own command starts Highball, and its entrypoint prepares the database
      # (bin/docker-entrypoint does so for `bin/rails server` only). These are Highball's options.
      env {
        RAILS_ENV     = "production"
        RACK_ENV      = "production"
        HIGHBALL_BIND = "0.0.0.0:{port}"
        # Health checks and metrics, and what load balancers ask: only for the private network.
        HIGHBALL_ADMIN         = "0.0.0.0:{admin_port}"
        HIGHBALL_AGENT_CHECK   = "0.0.0.0:{agent_port}"
        HIGHBALL_DRAIN_GRACE   = "{grace_seconds}s"
        HIGHBALL_DRAIN_TIMEOUT = "{drain_seconds}s"
        WEB_CONCURRENCY        = "{workers}"
        RAILS_MAX_THREADS      = "{threads}"
      }

      template {
        destination = "secrets/app.env"
        env         = true
        data        = <<-VARIABLES
          {{ range nomadVarList "nomad/jobs/{name}" }}{{ with nomadVar .Path }}{{ range .Tuples }}
          {{ .K }}={{ .V | toJSON }}
          {{ end }}{{ end }}{{ end }}
        VARIABLES
      }

      # After TERM, Highball goes on serving for drain_grace, until no request comes any more. Then it has drain_timeout to
      # finish. This is longer than both together; the clients of Nomad allow it with `max_kill_timeout`.
      kill_signal  = "SIGTERM"
      kill_timeout = "{kill_seconds}s"

      resources {
        cpu = {cpu_mhz} # MHz
{estimated}        # An estimate for {workers} workers. Measure: `highball memory` after some hours of real load, and then
{estimated}        # `highball config nomad --memory` with the sum of PSS.
{measured}        # As measured with `highball memory`; the rest is for growth and rolling restarts.
        memory     = {memory_mib}
        memory_max = {memory_limit_mib}
      }
    }
  }
}
