# frozen_string_literal: true

# rubocop:disable Layout/LineLength -- a table of sentences

require_relative "narrowing"

module Highball
  # The statements of a `config/puma.rb`, and what becomes of each: one table, from which PumaFile gets its methods and
  # docs/migrating/puma-statements.md its rows.
  module PumaStatements
    # What becomes of a statement.
    #
    # :option:: it sets options of Highball
    # :hook::   its block runs in the application's processes
    # :file::   it is carried out while the file is read
    # :built_in:: Highball does so anyway, or has nothing that it could concern: it is not reported
    # :named::  it is not carried out: a warning at the start, and `highball doctor`, report its line and a remedy
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

    # What becomes of `plugin NAME`: nil where Highball has it built in, else what to do instead.
    PLUGINS = {
      "tmp_restart" => nil,
      "systemd" => nil,
      "solid_queue" => "Run the jobs in a separate process: add `jobs: bin/jobs` to the Procfile, or start bin/jobs " \
                       "by systemd or as a second container role.",
      "litestream" => "Run it as a separate process: add `litestream: bin/rails litestream:replicate` to the Procfile.",
      "tailwindcss" => "Run it beside the server: add `css: bin/rails tailwindcss:watch` to Procfile.dev (bin/dev).",
      "dartsass" => "Run it beside the server: add `css: bin/rails dartsass:watch` to Procfile.dev (bin/dev).",
      "yabeda" => "It reports Puma's threads and queue; `highball status --json` has Highball's.",
      "yabeda_prometheus" => "Mount Yabeda::Prometheus::Exporter in config.ru or config/routes.rb.",
      "statsd" => "It reports Puma's threads and queue; `highball status --json` has Highball's.",
      "heroku" => "Leave it out: Highball reads PORT, WEB_CONCURRENCY and RAILS_MAX_THREADS itself."
    }.freeze
    OTHER_PLUGIN = "It is written for Puma. If it starts a process or a thread, start that from the Procfile, or in " \
                   "`Highball.after_fork` in config/highball.rb."

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

    # Whether an unknown statement, or the one that it may be meant to be, may narrow something. Puma refuses a file with
    # an unknown statement.
    def may_narrow?(name)
      guess = DidYouMean::SpellChecker.new(dictionary: BY_NAME.keys).correct(name.to_s).first if defined?(DidYouMean)
      [name, guess].any? { |text| Narrowing.may?(text) }
    end

    OPTIONS = [
      option("port", to: %w[port bind],
                     here: "The port. With a host, or beside other addresses, it is a separate address."),
      option("bind", to: %w[bind],
                     here: "`tcp://`, `unix://` and `ssl://` addresses (see `ssl_bind`). A Unix socket gets the permissions " \
                           "that the umask leaves: `umask` and `mode` are reported, and the socket is not bound where " \
                           "more users could connect than they say. `backlog` and `low_latency` need no setting."),
      option("ssl_bind", to: %w[bind tls_certificate tls_key https],
                         here: "An address for HTTPS, with the certificate of `cert` and `key`. In development, without both " \
                               "and with the gem localhost, Highball issues one. The address is not bound with other " \
                               "restrictions (`verify_mode`, `ssl_cipher_filter`), with texts in the place of files, or " \
                               "if a file cannot be read."),
      option("threads", to: %w[threads], here: "The larger number: the threads of a worker are all started at once."),
      option("workers", to: %w[workers],
                        here: "The number, or `:auto`, with which it follows the load. 0 is one worker. Without the statement and without " \
                              "WEB_CONCURRENCY it is `auto`, in development one."),
      option("environment", to: %w[environment], as: :text,
                            here: "The environment. RAILS_ENV, RACK_ENV and APP_ENV outweigh it."),
      option("pidfile", to: %w[pidfile], as: :text, here: "The PID file."),
      option("preload_app!", to: %w[preload], as: :switch,
                             here: "Highball preloads unless this is `false`; rolling restarts work with both."),
      option("fork_worker", to: %w[refork_after], as: :refork,
                            here: "Workers are forked again from a warm one after this many requests (1000 without a " \
                                  "number), and again each time."),
      option("worker_boot_timeout", to: %w[boot_timeout], as: :seconds, here: "The time the application has to boot."),
      option("worker_shutdown_timeout", to: %w[drain_timeout], as: :seconds,
                                        here: "The time that requests have to end when the server stops."),
      option("force_shutdown_after", to: %w[drain_timeout], as: :shutdown,
                                     here: "The same; `:immediately` is 0, `:forever` leaves the default (30 s)."),
      option("persistent_timeout", to: %w[idle_timeout], as: :seconds,
                                   here: "How long a connection without a request is kept."),
      option("first_data_timeout", to: %w[head_timeout], as: :seconds, here: "The time for a request head to arrive."),
      option("idle_timeout", to: %w[sleep_after], as: :seconds,
                             here: "After this time without a request the application's processes end; the next request " \
                                   "boots them again."),
      option("http_content_length_limit", to: %w[max_body], as: :integer,
                                          here: "The largest request body; a larger one is answered 413."),
      option("early_hints", to: %w[early_hints], as: :switch, here: "Early hints (status 103)."),
      option("log_requests", to: %w[access_log], as: :access_log, here: "A line per request on standard output."),
      option("quiet", to: %w[access_log], as: :no_access_log, here: "No line per request.")
    ].freeze

    HOOKS = [
      hook("before_fork", at: :before_fork, here: "In the mold, once the application is loaded, before the first fork."),
      hook("before_worker_boot", "on_worker_boot", at: :after_fork,
                                                   here: "In each new worker, before it serves. A number that the block takes is " \
                                                         "the worker's, from 0; no number is given twice, so it is reported."),
      hook("before_worker_shutdown", "on_worker_shutdown", at: :before_worker_shutdown,
                                                           here: "In a worker that has finished its last request."),
      hook("before_refork", "on_refork", at: :before_refork, here: "In the worker that others will be forked from."),
      hook("before_worker_fork", "on_worker_fork", at: :before_worker_fork, here: "In the mold, before each fork."),
      hook("after_worker_fork", "after_worker_boot", at: :after_worker_fork, here: "In the mold, after each fork."),
      hook("after_booted", "on_booted", at: :after_booted,
                                        here: "In the mold, after its first worker was forked: once at the start, and again in " \
                                              "the new mold of each restart and refork."),
      hook("before_thread_start", "on_thread_start", at: :thread_start,
                                                     here: "In each serving thread of a worker, when it starts."),
      hook("lowlevel_error_handler", at: :lowlevel_error_handler,
                                     here: "Its response is sent where the application raised an exception; the exception is " \
                                           "logged as well."),
      hook("rack_url_scheme", at: :rack_url_scheme, here: "`rack.url_scheme` of every request."),
      hook("supported_http_methods", at: :supported_http_methods,
                                     here: "Requests with other methods than these get 501. Without the statement, every " \
                                           "method goes to the application."),
      hook("set_remote_address", at: :set_remote_address,
                                 here: "`REMOTE_ADDR` of every request: this address, or what this header field says. " \
                                       "`proxy_protocol: :v1` sets the option `proxy_protocol`; see `proxy_protocol_from`.")
    ].freeze

    FILE = [
      file("load", here: "The file is read after this one."),
      file("_load_from", here: "The file is read at once."),
      file("plugin", here: "`:tmp_restart` and `:systemd` are built in. Other plugins are written for Puma: they are " \
                           "reported, with what to do instead."),
      file("rackup", here: "The rackup file, if it lies in the application's folder; else it is reported."),
      file("directory", "worker_directory",
           here: "The application is served from this folder; a restart follows the links on its path. A folder that is named on " \
                 "the command line outweighs it; then it is reported."),
      file("set_default_host", here: "The host of `port` statements that come after it."),
      file("default_host", here: "The host that was set."),
      file("clear_binds!", here: "Forgets the addresses that the file has given so far."),
      file("cluster", here: "The block is carried out after all files."),
      file("single", here: "The block is not carried out: there is always a worker process."),
      file("inject", here: "The block is carried out."),
      file("get", here: "The value that the file has given.")
    ].freeze

    BUILT_IN = [
      built_in("wait_for_less_busy_worker", here: "Each request goes to the least busy worker."),
      built_in("queue_requests", here: "Requests are received whole, and wait in one queue, before a worker is asked."),
      built_in("max_fast_inline", "max_keep_alive", "enable_keep_alives",
               here: "Connections are kept, and each request on them goes to the least busy worker."),
      built_in("nakayoshi_fork", here: "The heap is compacted and laid out before the first fork."),
      built_in("prune_bundler", "extra_runtime_dependencies",
               here: "Highball loads no gems itself, so there is nothing to prune."),
      built_in("worker_timeout", "worker_check_interval",
               here: "The end of a worker is noticed at once. `request_timeout` limits requests."),
      built_in("worker_culling_strategy", here: "The youngest worker ends first."),
      built_in("drain_on_shutdown", here: "Requests that have arrived are answered before the end."),
      built_in("silence_single_worker_warning", "silence_fork_callback_warning", here: "There is no such warning."),
      built_in("raise_exception_on_sigterm", here: "TERM ends the server with exit code 0."),
      built_in("reaping_time", "auto_trim_time", "max_io_threads", "before_thread_exit", "on_thread_exit",
               here: "The number of threads is fixed, so that none is trimmed."),
      built_in("io_selector_backend", here: "Connections are the front's, not Ruby's."),
      built_in("mutate_stdout_and_stderr_to_sync_on_write", here: "Standard output is not buffered."),
      built_in("restart_command", here: "`highball upgrade` starts the program that the server was started from."),
      built_in("debug", here: "Nothing."),
      built_in("_offer_plugins", here: "See `plugin`."),
      built_in("shutdown_debug", here: "The log says how many requests got no complete answer."),
      built_in("tag", here: "Processes have the name of the application's folder."),
      built_in("allow_underscore_headers", here: "Headers whose names have underscores are always dropped."),
      built_in("after_refork", here: "The worker that others were forked from does not serve again."),
      built_in("solid_queue_mode", here: "See `plugin :solid_queue`.")
    ].freeze

    NAMED = [
      named("bind_to_activated_sockets", target: :special,
                                         here: "Of the sockets of systemd (.socket units), those are taken whose address `bind` " \
                                               "names; others are closed.",
                                         remedy: "Give each address of the .socket unit by `bind` as well."),
      named("activate_control_app", here: "There is no control server.",
                                    remedy: "Use highball status, restart, upgrade and stop, which need no setting."),
      named("state_path", here: "No state file is written.", remedy: "Use highball status --json."),
      named("state_permission", here: "No state file is written.", remedy: "Use highball status --json."),
      named("daemonize", here: "The server stays in the foreground.",
                         remedy: "Let systemd start it (highball config systemd)."),
      named("stdout_redirect", here: "Output is not redirected.",
                               remedy: "Redirect it where the server is started: StandardOutput=append:FILE in the systemd " \
                                       "unit, or highball >>FILE 2>&1 in a shell."),
      named("app", here: "The application is not taken from this file.",
                   remedy: "Put it into config.ru: run ->(env) { … }."),
      named("custom_logger", here: "The log is not written by Ruby.",
                             remedy: "Use log_format = \"json\" for programs, or a file for access_log, in " \
                                     "config/highball.toml."),
      named("log_formatter", here: "The log is not written by Ruby.",
                             remedy: "Use log_format = \"json\" (HIGHBALL_LOG_FORMAT=json) for programs."),
      named("before_restart", "on_restart", here: "The block does not run: the new version boots in separate processes, " \
                                                  "beside the old one, which has nothing to close for it.",
                                            remedy: "Put what a worker does at its end into before_worker_shutdown."),
      named("after_stopped", "on_stopped", here: "The block does not run.",
                                           remedy: "Use before_worker_shutdown, which runs at the end of each worker."),
      named("after_worker_shutdown", here: "The block does not run.",
                                     remedy: "Use before_worker_shutdown, which runs in the worker itself; the log tells how " \
                                             "each worker ended."),
      named("out_of_band", here: "The block does not run.",
                           remedy: "Leave it out if it collects garbage; do other work in a background job."),
      named("clean_thread_locals", "fiber_per_request", here: "Thread locals are kept from one request to the next.",
                                                        remedy: "Use ActiveSupport::CurrentAttributes, or reset them in a " \
                                                                "middleware.")
    ].freeze

    TABLE = [*OPTIONS, *HOOKS, *FILE, *BUILT_IN, *NAMED].freeze
    BY_NAME = TABLE.flat_map { |statement| statement.names.map { |name| [name, statement] } }.to_h.freeze
    private_class_method :option, :hook, :file, :built_in, :named
  end
end

# rubocop:enable Layout/LineLength
