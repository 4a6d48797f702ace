# frozen_string_literal: true

# rubocop:disable Layout/LineLength -- a table of sentences

require_relative "narrowing"

module Highball
  # The statements of a `config/puma.rb`, and what Highball makes of each: one table, from which PumaFile gets its methods and
  # docs/migrating/puma-statements.md its rows.
  module PumaStatements
    # What Highball makes of a statement.
    #
    # :option:: it sets options of Highball
    # :hook::   its block runs in the application's processes
    # :file::   it is about the file itself, and takes effect while Highball reads the file
    # :built_in:: it needs no counterpart, and is not reported
    # :named::  it has no effect: a warning at the start, and `highball doctor`, report its line and a remedy
    FATES = %i[option hook file built_in named].freeze

    # names::  the statement and its other names
    # fate::   one of FATES
    # target:: the option, or the moment of the hook
    # as::     how PumaFile makes the option's text of the argument
    # here::   what Highball does
    # remedy:: what to do instead
    # narrows:: of a statement that is not carried out: what it would have narrowed, so that there is no start without it
    Statement = Struct.new(:names, :fate, :target, :as, :here, :remedy, :narrows, keyword_init: true)

    # Moments of hooks that are put around the application.
    AROUND = %i[lowlevel_error_handler rack_url_scheme supported_http_methods set_remote_address].freeze

    # The plugin that PumaFile carries out.
    JOBS = "solid_queue"
    # What replaces `plugin NAME`: nil where Highball has it built in, else what to do instead.
    PLUGINS = {
      "tmp_restart" => nil,
      "systemd" => nil,
      JOBS => "Nothing: Highball runs `bin/jobs` beside the workers, and restarts it with them ([jobs](../jobs.md)). " \
              "Without `bin/jobs`, it runs `bundle exec rake solid_queue:start`.",
      "litestream" => "Run it beside the workers: `--with litestream=\"bin/rails litestream:replicate\"`.",
      "tailwindcss" => "Run it as a separate process: add `css: bin/rails tailwindcss:watch` to Procfile.dev (bin/dev).",
      "dartsass" => "Run it as a separate process: add `css: bin/rails dartsass:watch` to Procfile.dev (bin/dev).",
      "yabeda" => "Leave it out: it reports Puma's threads and queue. `highball status --json` has Highball's.",
      "yabeda_prometheus" => "Mount Yabeda::Prometheus::Exporter in config.ru or config/routes.rb.",
      "statsd" => "Leave it out: it reports Puma's threads and queue. `highball status --json` has Highball's.",
      "heroku" => "Leave it out: Highball reads PORT, WEB_CONCURRENCY and RAILS_MAX_THREADS itself."
    }.freeze
    OTHER_PLUGIN = "It is written for Puma. If it starts a process, start that from the Procfile. If it starts a thread, " \
                   "start that with `Highball.after_fork` in config/highball.rb."

    module_function

    def option(*names, to:, here:, as: :special)
      Statement.new(names: names, fate: :option, target: to, as: as, here: here)
    end

    def hook(*names, at:, here:) = Statement.new(names: names, fate: :hook, target: at, here: here)
    def file(*names, here:) = Statement.new(names: names, fate: :file, here: here)
    def built_in(*names, here:) = Statement.new(names: names, fate: :built_in, here: here)

    def named(*names, here:, remedy:, **more)
      Statement.new(names: names, fate: :named, here: here, remedy: remedy, **more)
    end

    # The statement of this name, or nil.
    def find(name) = BY_NAME[name.to_s]

    # Whether an unknown statement, or the statement that it is probably meant to be, may narrow something. Puma refuses a file with
    # an unknown statement.
    def may_narrow?(name)
      guess = DidYouMean::SpellChecker.new(dictionary: BY_NAME.keys).correct(name.to_s).first if defined?(DidYouMean)
      [name, guess].any? { |text| Narrowing.may?(text) }
    end

    OPTIONS = [
      option("port", to: %w[port bind],
                     here: "The port. With a host, or beside other addresses, it adds an address."),
      option("bind", to: %w[bind],
                     here: "Addresses that begin with `tcp://`, `unix://` or `ssl://` (see `ssl_bind`). The umask decides the " \
                           "permissions of a Unix socket, so Highball reports `umask` and `mode`. It does not bind the " \
                           "socket if more users could connect than they allow. `backlog` and `low_latency` need no setting."),
      option("ssl_bind", to: %w[bind tls_certificate tls_key https],
                         here: "An address for HTTPS, with the certificate of `cert` and `key`. In development, without both " \
                               "and with the gem localhost, Highball issues a certificate. It does not bind the address if it " \
                               "has other restrictions (`verify_mode`, `ssl_cipher_filter`), if it gives certificates as " \
                               "text, or if a file cannot be read."),
      option("threads", to: %w[threads],
                        here: "The range. A worker begins with the smaller number, but at least with 3. It gets more threads " \
                              "when requests queue while all of them wait."),
      option("max_io_threads", to: %w[threads],
                               here: "Further threads, beyond those of `threads`. Requests may announce a wait by " \
                                     '`env["puma.mark_as_io_bound"].call`.'),
      option("workers", to: %w[workers],
                        here: "The number, or `:auto`: the number follows the load. 0 means one worker. Without the statement and without " \
                              "WEB_CONCURRENCY it is `auto`, and 1 in development."),
      option("environment", to: %w[environment], as: :text,
                            here: "The environment. RAILS_ENV, RACK_ENV and APP_ENV override it."),
      option("pidfile", to: %w[pidfile], as: :text, here: "The PID file."),
      option("preload_app!", to: %w[preload], as: :switch,
                             here: "Highball preloads unless this is `false`. Rolling restarts work with both."),
      option("fork_worker", to: %w[refork_after], as: :refork,
                            here: "Highball forks the workers again from a warm one, each time a worker has served this many " \
                                  "requests (1000 without a number)."),
      option("worker_boot_timeout", to: %w[boot_timeout], as: :seconds, here: "How long the application may take to boot."),
      option("worker_shutdown_timeout", to: %w[drain_timeout], as: :seconds,
                                        here: "How long requests may take to finish when the server stops."),
      option("force_shutdown_after", to: %w[drain_timeout], as: :shutdown,
                                     here: "The same. `:immediately` is 0, and `:forever` leaves the default (30 s)."),
      option("persistent_timeout", to: %w[idle_timeout], as: :seconds,
                                   here: "How long an idle connection is kept open."),
      option("first_data_timeout", to: %w[head_timeout], as: :seconds, here: "How long a request head may take to arrive."),
      option("idle_timeout", to: %w[sleep_after], as: :seconds,
                             here: "After this time without a request, the application's processes end. The next request " \
                                   "boots them again."),
      option("http_content_length_limit", to: %w[max_body], as: :integer,
                                          here: "The largest request body. A larger one gets 413."),
      option("early_hints", to: %w[early_hints], as: :switch, here: "Whether the application may send early hints (status 103)."),
      option("log_requests", to: %w[access_log], as: :access_log, here: "Logs each request to standard output."),
      option("quiet", to: %w[access_log], as: :no_access_log, here: "Logs no requests.")
    ].freeze

    HOOKS = [
      hook("before_fork", at: :before_fork, here: "In the mold, after it has loaded the application and before its first fork."),
      hook("before_worker_boot", "on_worker_boot", at: :after_fork,
                                                   here: "In each new worker, before it serves. If the block takes an argument, it " \
                                                         "gets the worker's number, from 0. Highball reports this, as it " \
                                                         "uses no number twice."),
      hook("before_worker_shutdown", "on_worker_shutdown", at: :before_worker_shutdown,
                                                           here: "In a worker, after its last request."),
      hook("before_refork", "on_refork", at: :before_refork, here: "In a worker that becomes the mold."),
      hook("before_worker_fork", "on_worker_fork", at: :before_worker_fork, here: "In the mold, before each fork."),
      hook("after_worker_fork", "after_worker_boot", at: :after_worker_fork, here: "In the mold, after each fork."),
      hook("after_booted", "on_booted", at: :after_booted,
                                        here: "In the mold, after its first fork: once at the start, and again in the new mold of " \
                                              "each restart and refork."),
      hook("before_thread_start", "on_thread_start", at: :thread_start,
                                                     here: "In each serving thread of a worker, when the thread starts."),
      hook("lowlevel_error_handler", at: :lowlevel_error_handler,
                                     here: "When the application raises an exception. Highball sends the response of the block, and " \
                                           "logs the exception."),
      hook("rack_url_scheme", at: :rack_url_scheme, here: "For each request: sets `rack.url_scheme`."),
      hook("supported_http_methods", at: :supported_http_methods,
                                     here: "For each request: other methods than these get 501. Without the statement, the " \
                                           "application gets every method."),
      hook("set_remote_address", at: :set_remote_address,
                                 here: "For each request: sets `REMOTE_ADDR` to this address, or to the value of this header field. " \
                                       "`proxy_protocol: :v1` sets the option `proxy_protocol`; see `proxy_protocol_from`.")
    ].freeze

    FILE = [
      file("load", here: "Reads the file after this one."),
      file("_load_from", here: "Reads the file at once."),
      file("plugin", here: "Has `:tmp_restart` and `:systemd` built in, and runs Solid Queue for `:solid_queue`. Other " \
                           "plugins are written for Puma: Highball reports them, with what to do instead."),
      file("rackup", here: "Uses the rackup file if it is in the application's folder, and reports it otherwise."),
      file("directory", "worker_directory",
           here: "Serves the application in this folder. A restart follows the links on its path. A folder on the command line " \
                 "overrides it; Highball then reports the statement."),
      file("set_default_host", here: "Uses the host for the `port` statements that follow."),
      file("default_host", here: "Returns the host that was set."),
      file("clear_binds!", here: "Forgets the addresses that the file has given so far."),
      file("cluster", here: "Runs the block after all files."),
      file("single", here: "Skips the block: there is always a worker process."),
      file("inject", here: "Runs the block."),
      file("get", here: "Returns the value that the file has given.")
    ].freeze

    BUILT_IN = [
      built_in("wait_for_less_busy_worker", here: "Each request goes to the least busy worker."),
      built_in("queue_requests", here: "Highball receives requests whole, and they wait in one queue for a worker."),
      built_in("max_fast_inline", "max_keep_alive", "enable_keep_alives",
               here: "Highball keeps connections open. Each request on them goes to the least busy worker."),
      built_in("nakayoshi_fork", here: "Highball arranges the heap before the first fork, and compacts it with Ruby 3.3 and later."),
      built_in("prune_bundler", "extra_runtime_dependencies",
               here: "Highball loads no gems itself, so there is nothing to prune."),
      built_in("worker_timeout", "worker_check_interval",
               here: "Highball notices at once when a worker ends. `request_timeout` limits requests."),
      built_in("worker_culling_strategy", here: "The youngest worker ends first."),
      built_in("drain_on_shutdown", here: "Highball answers the requests that have arrived, then stops."),
      built_in("silence_single_worker_warning", "silence_fork_callback_warning", here: "Highball has no such warning."),
      built_in("raise_exception_on_sigterm", here: "TERM ends the server with exit code 0."),
      built_in("reaping_time", "auto_trim_time", "before_thread_exit", "on_thread_exit",
               here: "Idle threads beyond the smaller number end after a while."),
      built_in("io_selector_backend", here: "Ruby handles no connections."),
      built_in("mutate_stdout_and_stderr_to_sync_on_write", here: "Ruby does not buffer standard output."),
      built_in("restart_command", here: "`highball upgrade` starts the program at the path that the server was started from."),
      built_in("debug", here: "Nothing: it is a setting of Puma."),
      built_in("_offer_plugins", here: "See `plugin`."),
      built_in("shutdown_debug", here: "The log says how many requests got no complete response."),
      built_in("tag", here: "Processes are named after the application's folder."),
      built_in("allow_underscore_headers", here: "Highball always drops header fields with underscores in their names."),
      built_in("after_refork", here: "A worker that becomes the mold does not serve again."),
      built_in("solid_queue_mode", here: "`:fork`, or `:async`: the mode of the jobs that `plugin :solid_queue` runs.")
    ].freeze

    NAMED = [
      named("bind_to_activated_sockets", target: :special,
                                         here: "Highball uses the sockets of a systemd .socket unit whose addresses `bind` names, " \
                                               "and closes the others.",
                                         remedy: "Name each address of the .socket unit with `bind` as well."),
      named("activate_control_app", here: "Highball has no control server.",
                                    remedy: "Use highball status, restart, upgrade and stop. They need no setting."),
      named("state_path", here: "Highball writes no state file.", remedy: "Use highball status --json."),
      named("state_permission", here: "Highball writes no state file.", remedy: "Use highball status --json."),
      named("daemonize", here: "The server stays in the foreground.",
                         remedy: "Start it with systemd (highball config systemd)."),
      named("stdout_redirect", here: "Highball does not redirect its output.",
                               remedy: "Redirect it where you start the server: StandardOutput=append:FILE in the systemd " \
                                       "unit, or highball >>FILE 2>&1 in a shell."),
      named("app", here: "Highball does not take the application from this file.",
                   remedy: "Put it into config.ru: run ->(env) { … }."),
      named("custom_logger", here: "Highball, not Ruby, writes the log.",
                             remedy: "Use log_format = \"json\" for programs, or a file for access_log, in " \
                                     "config/highball.toml."),
      named("log_formatter", here: "Highball, not Ruby, writes the log.",
                             remedy: "Use log_format = \"json\" (HIGHBALL_LOG_FORMAT=json) for programs."),
      named("before_restart", "on_restart", here: "The block does not run: the new version boots in separate processes " \
                                                  "beside the old one, and needs nothing closed.",
                                            remedy: "Use before_worker_shutdown for what a worker does at its end."),
      named("after_stopped", "on_stopped", here: "The block does not run.",
                                           remedy: "Use before_worker_shutdown, which runs at the end of each worker."),
      named("after_worker_shutdown", here: "The block does not run.",
                                     remedy: "Use before_worker_shutdown, which runs in the worker itself. The log says how " \
                                             "each worker ended."),
      named("out_of_band", here: "The block does not run.",
                           remedy: "Leave it out if it collects garbage: Highball does that. Do other work in a background job."),
      named("clean_thread_locals", "fiber_per_request", here: "Highball keeps thread locals from one request to the next.",
                                                        remedy: "Use ActiveSupport::CurrentAttributes, or reset them in a " \
                                                                "middleware.")
    ].freeze

    TABLE = [*OPTIONS, *HOOKS, *FILE, *BUILT_IN, *NAMED].freeze
    BY_NAME = TABLE.flat_map { |statement| statement.names.map { |name| [name, statement] } }.to_h.freeze
    private_class_method :option, :hook, :file, :built_in, :named
  end
end

# rubocop:enable Layout/LineLength
