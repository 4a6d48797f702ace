# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_highball_global_optspecs
    string join \n p/port= b/bind= proxy-protocol= proxy-protocol-from= trusted-proxies= canonical-host= redirects= response-headers= http2-cleartext= https= tls-certificate= tls-key= tls-client-ca= tls-client-auth= domain= domain-on-demand= domain-ask= acme-directory= acme-contact= acme-authorities= acme-eab-kid= acme-eab-key-file= acme-dns-hook= state-dir= redirect-https= hsts= e/environment= early-hints= c/config= puma-config= ruby= preload= jit= allocator= gc= boot-cache= with= procfile= w/workers= min-workers= max-workers= t/threads= refork-after= rest-mold-after= memory-limit= memory-budget= memory-max= cpu-max= pidfile= boot-timeout= drain-timeout= drain-grace= hijacked-drain-timeout= probe-path= warm-up= probe-timeout= max-boot-failures= head-timeout= tls-handshake-timeout= body-timeout= min-body-rate= idle-timeout= send-timeout= stream-idle-timeout= request-timeout= request-timeouts= request-timeout-header= timeout-interrupts= slow-request= max-target= max-head= max-fields= max-body= body-memory= response-buffer= response-spool= max-buffers= max-connections= max-tls-handshakes= http2-streams= max-queue= max-streams= affinity= fibers= max-fibers= fiber-scheduler= spool-dir= max-spool= app-max-spool= max-cache= static-files= follow-symlinks= compress= cache= sendfile= max-held= max-held-streams= max-message= hub-history= hub-history-time= hub-heartbeat= hold-cable= cable= max-cable-clients= max-cable-message= max-cable-streams= max-hub= admin= admin-host= admin-actions= agent-check= stuck-after= maintenance-file= health-path= max-output= log-format= access-log= access-log-format= access-log-sample= request-start= server-timing= request-id= otlp-endpoint= server-user= show-diagnosis= user= rate-limit= rate-limit-exempt= basic-auth= basic-auth-realm= no-new-privs= name= hosts= prefix= variables= pass-variables= prestart= sleep-after= h/help V/version
end

function __fish_highball_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_highball_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_highball_using_subcommand
    set -l cmd (__fish_highball_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c highball -n "__fish_highball_needs_command" -s p -l port -d 'TCP port for HTTP addresses that name none [default: 3000] [env: PORT]' -r
complete -c highball -n "__fish_highball_needs_command" -s b -l bind -d 'Address to listen on [default: 0.0.0.0; in development 127.0.0.1] [env: BINDING]' -r
complete -c highball -n "__fish_highball_needs_command" -l proxy-protocol -d 'Versions of the PROXY protocol that load balancers send on HTTP connections [default: off]' -r -f -a "off\t''
v1\t''
v2\t''
v1\,v2\t''"
complete -c highball -n "__fish_highball_needs_command" -l proxy-protocol-from -d 'Load balancer that may use `proxy_protocol`: an address or a network [default: loopback]' -r
complete -c highball -n "__fish_highball_needs_command" -l trusted-proxies -d 'HTTP proxy in front of Highball whose headers are trusted: an address or a network [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l canonical-host -d 'Host name that visitors should use [default: none; every host of the application serves it]' -r
complete -c highball -n "__fish_highball_needs_command" -l redirects -d 'Path that has moved, its new path or URL, and optionally a status: 301 (the default), 302, 307 or 308 [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l response-headers -d 'Header field that responses get, for all paths or for a path: `X-Frame-Options: DENY`, `/fonts/* Access-Control-Allow-Origin: *` [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l http2-cleartext -d 'Serve HTTP/2 without TLS on HTTP addresses, to clients that begin with it (prior knowledge) [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l https -d 'Serve HTTPS in development with certificates for `localhost` and names below it, such as `blog.localhost` [default: off]' -r -f -a "on\t''
off\t''"
complete -c highball -n "__fish_highball_needs_command" -l tls-certificate -d 'PEM file with a TLS certificate, followed by its intermediate certificates (certbot\'s `fullchain.pem`) [default: none; HTTPS addresses need one]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l tls-key -d 'PEM file with the private key of `tls_certificate`, not encrypted [default: the certificate file]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l tls-client-ca -d 'PEM file with the certificates of the authorities that issue certificates to clients [default: none; clients are asked for no certificate]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l tls-client-auth -d 'Clients that reach an application with `tls_client_ca` [default: required]' -r -f -a "required\t''
optional\t''
off\t''"
complete -c highball -n "__fish_highball_needs_command" -l domain -d 'Domain name to get an automatic certificate for [default: none; no authority is asked]' -r
complete -c highball -n "__fish_highball_needs_command" -l domain-on-demand -d 'Domain name whose certificate is obtained when the first client asks for it [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l domain-ask -d 'Path at which the application decides whether a name gets a certificate [default: none; the application is not asked]' -r
complete -c highball -n "__fish_highball_needs_command" -l acme-directory -d 'URL of the ACME directory of the authority that issues certificates for `domain` [default: https://acme-v02.api.letsencrypt.org/directory]' -r
complete -c highball -n "__fish_highball_needs_command" -l acme-contact -d 'E-mail address for the ACME authority [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l acme-authorities -d 'PEM file with the CA certificate for the server of a private ACME authority [default: the machine\'s certificate authorities]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l acme-eab-kid -d 'Key identifier of your account with the ACME authority (external account binding) [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l acme-eab-key-file -d 'File with the HMAC key for `acme_eab_kid`, in Base64, as the authority shows it [default: none]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l acme-dns-hook -d 'Program that adds DNS entries, to prove that you control a `domain` (DNS-01) [default: none; the authority asks this server]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l state-dir -d 'Folder for the accounts, certificates and keys of `domain` [default: `acme` in systemd\'s `STATE_DIRECTORY`; else `highball` in `XDG_STATE_HOME` or `~/.local/state`]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l redirect-https -d 'Redirect HTTP clients to HTTPS (status 308) [default: `off`; `on` with `domain` and without `bind`]' -r
complete -c highball -n "__fish_highball_needs_command" -l hsts -d 'Time for which browsers use only HTTPS for a host (`Strict-Transport-Security`) [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -s e -l environment -d 'Environment that the application runs in [default: development] [env: RAILS_ENV] [env: RACK_ENV] [env: APP_ENV]' -r -f -a "development\t''
production\t''
staging\t''
test\t''"
complete -c highball -n "__fish_highball_needs_command" -l early-hints -d 'Let the application send early hints (status 103) [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -s c -l config -d 'Configuration file, instead of the files in the application\'s folder [default: config/highball.toml, highball.toml or config/puma.rb in the application, if there is one]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l puma-config -d 'Apply the application\'s `config/puma.rb` [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l ruby -d 'Ruby that runs the application: a path, or a name to look up in `PATH` [default: the version that the application\'s files and rbenv, mise or asdf choose, else `ruby` in PATH]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l preload -d 'Load the application once, before workers are forked, so that they share its memory [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l jit -d 'Ruby\'s compiler, YJIT (Ruby 3.1 and later) [default: auto]' -r -f -a "auto\t''
on\t''
off\t''"
complete -c highball -n "__fish_highball_needs_command" -l allocator -d 'Memory allocator of the application\'s processes [default: auto]' -r -f -a "auto\t''
jemalloc\t''
system\t''"
complete -c highball -n "__fish_highball_needs_command" -l gc -d 'Tune Ruby\'s garbage collector in production [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l boot-cache -d 'Keep the application\'s Ruby files in compiled form, in production, so that the next boot is faster [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l with -d 'Process that runs beside the application\'s workers, such as background jobs: a name, and a command for the shell [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l procfile -d 'Processes of the application\'s `Procfile` that run beside its workers, as with `process` [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -s w -l workers -d 'Number of worker processes [default: auto; in development 1] [env: WEB_CONCURRENCY]' -r
complete -c highball -n "__fish_highball_needs_command" -l min-workers -d 'Smallest number of workers with `workers = auto` [default: 1]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-workers -d 'Largest number of workers with `workers = auto` [default: auto]' -r
complete -c highball -n "__fish_highball_needs_command" -s t -l threads -d 'Threads in each worker [default: auto] [env: RAILS_MAX_THREADS] [env: PUMA_MAX_THREADS] [env: MAX_THREADS]' -r
complete -c highball -n "__fish_highball_needs_command" -l refork-after -d 'Number of requests after which all workers are forked again, from a warm worker [default: auto; in development off]' -r
complete -c highball -n "__fish_highball_needs_command" -l rest-mold-after -d 'Time after which the mold ends if there is only one worker [default: 10s; in development none]' -r
complete -c highball -n "__fish_highball_needs_command" -l memory-limit -d 'Memory of a worker above which Highball replaces it [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l memory-budget -d 'Memory of all processes of the application, above which its largest worker is replaced [default: auto]' -r
complete -c highball -n "__fish_highball_needs_command" -l memory-max -d 'Memory that all processes of the application may have [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l cpu-max -d 'CPUs that all processes of the application may use at a time [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l pidfile -d 'File for the process id of the server [default: none] [env: PIDFILE]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l boot-timeout -d 'Time for the application to boot, and for a worker to start [default: 60s; in development 300s]' -r
complete -c highball -n "__fish_highball_needs_command" -l drain-timeout -d 'Time for running requests to finish when the server stops or a worker is replaced [default: 30s]' -r
complete -c highball -n "__fish_highball_needs_command" -l drain-grace -d 'Time between the signal to stop and the moment when Highball accepts no new connections [default: 0s]' -r
complete -c highball -n "__fish_highball_needs_command" -l hijacked-drain-timeout -d 'Time for WebSockets and other hijacked connections to end [default: 5s]' -r
complete -c highball -n "__fish_highball_needs_command" -l probe-path -d 'Path that a new version must answer in a restart before it gets clients\' requests [default: /]' -r
complete -c highball -n "__fish_highball_needs_command" -l warm-up -d 'Path that Highball requests from each new worker in a restart or refork, before clients\' requests [default: only the `probe_path`]' -r
complete -c highball -n "__fish_highball_needs_command" -l probe-timeout -d 'Time for a new version to answer the request for `probe_path` [default: 30s]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-boot-failures -d 'Number of boots or workers that may fail in a row before they serve [default: 5]' -r
complete -c highball -n "__fish_highball_needs_command" -l head-timeout -d 'Time for a request head to arrive, from its first byte [default: 15s]' -r
complete -c highball -n "__fish_highball_needs_command" -l tls-handshake-timeout -d 'Time for the TLS handshake of a connection [default: 10s]' -r
complete -c highball -n "__fish_highball_needs_command" -l body-timeout -d 'Longest pause between two pieces of a request body [default: 30s]' -r
complete -c highball -n "__fish_highball_needs_command" -l min-body-rate -d 'Lowest average rate of a request body, in bytes per second [default: 500]' -r
complete -c highball -n "__fish_highball_needs_command" -l idle-timeout -d 'Time for which a connection without a request stays open [default: 65s] [env: PUMA_PERSISTENT_TIMEOUT]' -r
complete -c highball -n "__fish_highball_needs_command" -l send-timeout -d 'Longest pause in which a client takes nothing of its response [default: 60s]' -r
complete -c highball -n "__fish_highball_needs_command" -l stream-idle-timeout -d 'Longest pause in which the application writes nothing to a streaming response [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l request-timeout -d 'Time for the application to begin its response [default: 60s; in development none]' -r
complete -c highball -n "__fish_highball_needs_command" -l request-timeouts -d 'A different `request_timeout` for some paths [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l request-timeout-header -d 'Header field that tells the application how much time is left for a request [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l timeout-interrupts -d 'Raise `Highball::RequestTimeout` in the thread of a request that exceeds its time [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l slow-request -d 'Time from which on a request is slow [default: 2s]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-target -d 'Longest request target (path and query) [default: 16k]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-head -d 'Largest request head (request line and header fields) [default: 64k]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-fields -d 'Largest number of header fields in a request [default: 128]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-body -d 'Largest request body [default: 1g]' -r
complete -c highball -n "__fish_highball_needs_command" -l body-memory -d 'Largest request body that fits into a worker\'s ring beside the request [default: 64k]' -r
complete -c highball -n "__fish_highball_needs_command" -l response-buffer -d 'Memory for the part of a response that the client has not taken [default: 256k]' -r
complete -c highball -n "__fish_highball_needs_command" -l response-spool -d 'Largest part of a response in a spool file [default: 1g]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-buffers -d 'Memory for all request bodies and for responses to slow clients [default: an eighth of the memory of the machine or the container, at least 16 MiB]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-connections -d 'Largest number of open client connections [default: 10000]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-tls-handshakes -d 'Largest number of TLS handshakes that are computed or wait for a CPU [default: 1000]' -r
complete -c highball -n "__fish_highball_needs_command" -l http2-streams -d 'Largest number of open requests on an HTTP/2 connection [default: 100]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-queue -d 'Largest number of requests that wait for a worker [default: 1000]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-streams -d 'Largest number of streaming responses per worker [default: 1000]' -r
complete -c highball -n "__fish_highball_needs_command" -l affinity -d 'Send the requests of a session to the same worker while it lives, for applications that keep sessions in memory, such as MCP servers [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l fibers -d 'Paths whose requests run on fibers: while one waits for a socket, a database or a timer, the others of its worker go on, and it takes no thread [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-fibers -d 'Largest number of requests on `fibers` per worker [default: 5000]' -r
complete -c highball -n "__fish_highball_needs_command" -l fiber-scheduler -d 'Ruby class that schedules the fibers of `fibers`, instead of Highball\'s scheduler [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l spool-dir -d 'Folder for large request bodies, and for responses to slow clients [default: /var/tmp if it is writable, else $TMPDIR, else /tmp]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l max-spool -d 'Total size of all spool files [default: half of the free space in `spool_dir`; a quarter if it is in memory]' -r
complete -c highball -n "__fish_highball_needs_command" -l app-max-spool -d 'Total size of the spool files of an application [default: `max_spool`; half of it with several applications]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-cache -d 'Memory for the stored responses of all applications together (`cache` is for each) [default: 256m]' -r
complete -c highball -n "__fish_highball_needs_command" -l static-files -d 'Serve the application\'s `public` folder, and assets that need no processing, without Ruby [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l follow-symlinks -d 'Follow symbolic links in the `public` folder [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l compress -d 'Compress responses and static files for clients that accept it (zstd, Brotli, gzip) [default: on; in development off]' -r
complete -c highball -n "__fish_highball_needs_command" -l cache -d 'Memory for stored responses of the application; 0 turns the cache off [default: 0]' -r
complete -c highball -n "__fish_highball_needs_command" -l sendfile -d 'Folder of files that the application may name in `X-Sendfile` or `X-Accel-Redirect` [default: none: these headers are passed on to a web server in front]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-held -d 'Largest number of [held responses](server-sent-events.md) [default: 10000]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-held-streams -d 'Largest number of streams that a held response may name [default: 32]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-message -d 'Largest message [default: 256k]' -r
complete -c highball -n "__fish_highball_needs_command" -l hub-history -d 'Number of messages that each stream keeps for clients that reconnect [default: 1000]' -r
complete -c highball -n "__fish_highball_needs_command" -l hub-history-time -d 'Time for which a stream keeps a message for clients that reconnect [default: 5m]' -r
complete -c highball -n "__fish_highball_needs_command" -l hub-heartbeat -d 'Interval at which a held response without messages gets a comment, so that proxies do not close it, and Highball notices when the client has left [default: 15s]' -r
complete -c highball -n "__fish_highball_needs_command" -l hold-cable -d 'Hold the WebSockets of [Action Cable](action-cable.md) in the server, so that they stay open while workers restart [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l cable -d 'Adapter of [Action Cable](action-cable.md) where `config/cable.yml` has `async` or `inline`, whose broadcasts reach the clients of one worker alone [default: auto]' -r -f -a "auto\t''
off\t''"
complete -c highball -n "__fish_highball_needs_command" -l max-cable-clients -d 'Largest number of Action Cable WebSockets that the server holds for the application [default: 10000]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-cable-message -d 'Largest message that a client of Action Cable can send [default: 64k]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-cable-streams -d 'Largest number of subscriptions of an Action Cable client, and of streams of all its subscriptions [default: 100]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-hub -d 'Memory for the messages that streams keep, of all applications together [default: 64m]' -r
complete -c highball -n "__fish_highball_needs_command" -l admin -d 'Address for health checks (`/livez`, `/readyz`), metrics (`/metrics`) and the dashboard (`/`) [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l admin-host -d 'Host name for requests to the `admin` address, besides IP addresses and `localhost` [default: IP addresses, and `localhost` with its subdomains]' -r
complete -c highball -n "__fish_highball_needs_command" -l admin-actions -d 'Show buttons on the dashboard: restart, refork, add or remove a worker, replace the worker of a request [default: off]' -r -f -a "on\t''
off\t''"
complete -c highball -n "__fish_highball_needs_command" -l agent-check -d 'Address at which load balancers ask how busy the server is, with HAProxy\'s agent check [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l stuck-after -d 'Time without a free thread and without a response after which an application is stuck [default: 15s]' -r
complete -c highball -n "__fish_highball_needs_command" -l maintenance-file -d 'File that `highball maintenance on` writes and `off` removes [default: tmp/maintenance.json]' -r
complete -c highball -n "__fish_highball_needs_command" -l health-path -d 'Path at which Highball answers health checks of the application, at the addresses for clients [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-output -d 'Output per second of an application of another user, in bytes [default: 1m]' -r
complete -c highball -n "__fish_highball_needs_command" -l log-format -d 'Format of the log on standard error: `human` or `json` [default: human]' -r -f -a "human\t''
json\t''"
complete -c highball -n "__fish_highball_needs_command" -l access-log -d 'File for a line about each request [default: none; in development -]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l access-log-format -d 'Format of the lines of the access log: `combined`, `json`, or a text with names of fields in braces [default: combined; with log_format = json json]' -r
complete -c highball -n "__fish_highball_needs_command" -l access-log-sample -d 'Share of the requests that get a line in the access log, chosen at random [default: 100%]' -r
complete -c highball -n "__fish_highball_needs_command" -l request-start -d 'Add `X-Request-Start` to the application\'s requests, if no proxy has sent it or `X-Queue-Start` [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l server-timing -d 'Add a `Server-Timing` field to the application\'s responses [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l request-id -d 'Give each request an id, in the field `X-Request-Id` [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l otlp-endpoint -d 'URL of an OpenTelemetry collector, to which Highball sends spans of requests by OTLP over HTTP; it adds `/v1/traces` [default: `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT` in the environment; else `none`]' -r
complete -c highball -n "__fish_highball_needs_command" -l server-user -d 'User that the server runs as if root starts Highball [default: `highball` if that user exists, else 65534 (`nobody`)]' -r
complete -c highball -n "__fish_highball_needs_command" -l show-diagnosis -d 'Clients that see the details of errors in development [default: link]' -r -f -a "link\t''
local\t''
off\t''"
complete -c highball -n "__fish_highball_needs_command" -l user -d 'User that the application runs as, by name or number [default: the user who starts Highball; under root, the owner of the application\'s files]' -r
complete -c highball -n "__fish_highball_needs_command" -l rate-limit -d 'Number of requests that each client may send, for all paths or for a path: `10/s`, `/login 5/min`, `/api/* 100/min burst 20` [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l rate-limit-exempt -d 'Client without a `rate_limit`: an address or a network [default: loopback]' -r
complete -c highball -n "__fish_highball_needs_command" -l basic-auth -d 'File with users and password hashes for HTTP basic authentication, as `htpasswd -B` writes it [default: none]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l basic-auth-realm -d 'Text that browsers may show when they ask for the password of `basic_auth` [default: Restricted]' -r
complete -c highball -n "__fish_highball_needs_command" -l no-new-privs -d 'Deny the application\'s processes more rights than their user has (`no_new_privs` of Linux) [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l name -d 'Name of the application in the log and in commands [default: the name of its folder; if that is `current`, of the folder above it]' -r
complete -c highball -n "__fish_highball_needs_command" -l hosts -d 'Host name of the application [default: all hosts; with several applications NAME and NAME.localhost, or all hosts with a `prefix`]' -r
complete -c highball -n "__fish_highball_needs_command" -l prefix -d 'URL path that the application is served below [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l variables -d 'Environment variable for the application\'s processes, in addition to the variables that Highball passes on [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l pass-variables -d 'Variable of Highball\'s environment to pass on to an application of another user [default: only the variables that `docs/users.md` lists]' -r
complete -c highball -n "__fish_highball_needs_command" -l prestart -d 'Boot the application when the server starts [default: on; off in development with several applications]' -r
complete -c highball -n "__fish_highball_needs_command" -l sleep-after -d 'Idle time after which the application\'s processes end, to save memory [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_needs_command" -s V -l version -d 'Print version'
complete -c highball -n "__fish_highball_needs_command" -a "serve" -d 'Serve the application at PATH, or several (the same as no command)'
complete -c highball -n "__fish_highball_needs_command" -a "doctor" -d 'Boot the app once, without serving it, and report current and likely problems'
complete -c highball -n "__fish_highball_needs_command" -a "config" -d 'Print a configuration for nginx, HAProxy, systemd, Kubernetes and other programs'
complete -c highball -n "__fish_highball_needs_command" -a "init" -d 'Write a configuration file, a Procfile and a systemd unit for the app'
complete -c highball -n "__fish_highball_needs_command" -a "status" -d 'Show the state of running servers and their applications'
complete -c highball -n "__fish_highball_needs_command" -a "top" -d 'Watch a running server: its workers and their requests'
complete -c highball -n "__fish_highball_needs_command" -a "profile" -d 'Show where the time of a running application goes, as a flame graph'
complete -c highball -n "__fish_highball_needs_command" -a "restart" -d 'Load new code without dropping requests (rolling restart)'
complete -c highball -n "__fish_highball_needs_command" -a "rollout" -d 'Give a share of the visitors the new code, then more of them, or go back'
complete -c highball -n "__fish_highball_needs_command" -a "refork" -d 'Fork all workers again from a warm one, so that they share more memory'
complete -c highball -n "__fish_highball_needs_command" -a "upgrade" -d 'Start a new Highball in place of the running one, without dropping requests'
complete -c highball -n "__fish_highball_needs_command" -a "maintenance" -d 'Show visitors a maintenance page, or the application again'
complete -c highball -n "__fish_highball_needs_command" -a "stop" -d 'Let a running server finish its requests and exit'
complete -c highball -n "__fish_highball_needs_command" -a "memory" -d 'Show the memory of running servers and their Ruby heaps'
complete -c highball -n "__fish_highball_needs_command" -a "bench" -d 'Measure an application, or compare ways to deploy it'
complete -c highball -n "__fish_highball_needs_command" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c highball -n "__fish_highball_using_subcommand serve" -s p -l port -d 'TCP port for HTTP addresses that name none [default: 3000] [env: PORT]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -s b -l bind -d 'Address to listen on [default: 0.0.0.0; in development 127.0.0.1] [env: BINDING]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l proxy-protocol -d 'Versions of the PROXY protocol that load balancers send on HTTP connections [default: off]' -r -f -a "off\t''
v1\t''
v2\t''
v1\,v2\t''"
complete -c highball -n "__fish_highball_using_subcommand serve" -l proxy-protocol-from -d 'Load balancer that may use `proxy_protocol`: an address or a network [default: loopback]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l trusted-proxies -d 'HTTP proxy in front of Highball whose headers are trusted: an address or a network [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l canonical-host -d 'Host name that visitors should use [default: none; every host of the application serves it]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l redirects -d 'Path that has moved, its new path or URL, and optionally a status: 301 (the default), 302, 307 or 308 [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l response-headers -d 'Header field that responses get, for all paths or for a path: `X-Frame-Options: DENY`, `/fonts/* Access-Control-Allow-Origin: *` [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l http2-cleartext -d 'Serve HTTP/2 without TLS on HTTP addresses, to clients that begin with it (prior knowledge) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l https -d 'Serve HTTPS in development with certificates for `localhost` and names below it, such as `blog.localhost` [default: off]' -r -f -a "on\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand serve" -l tls-certificate -d 'PEM file with a TLS certificate, followed by its intermediate certificates (certbot\'s `fullchain.pem`) [default: none; HTTPS addresses need one]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l tls-key -d 'PEM file with the private key of `tls_certificate`, not encrypted [default: the certificate file]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l tls-client-ca -d 'PEM file with the certificates of the authorities that issue certificates to clients [default: none; clients are asked for no certificate]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l tls-client-auth -d 'Clients that reach an application with `tls_client_ca` [default: required]' -r -f -a "required\t''
optional\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand serve" -l domain -d 'Domain name to get an automatic certificate for [default: none; no authority is asked]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l domain-on-demand -d 'Domain name whose certificate is obtained when the first client asks for it [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l domain-ask -d 'Path at which the application decides whether a name gets a certificate [default: none; the application is not asked]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l acme-directory -d 'URL of the ACME directory of the authority that issues certificates for `domain` [default: https://acme-v02.api.letsencrypt.org/directory]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l acme-contact -d 'E-mail address for the ACME authority [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l acme-authorities -d 'PEM file with the CA certificate for the server of a private ACME authority [default: the machine\'s certificate authorities]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l acme-eab-kid -d 'Key identifier of your account with the ACME authority (external account binding) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l acme-eab-key-file -d 'File with the HMAC key for `acme_eab_kid`, in Base64, as the authority shows it [default: none]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l acme-dns-hook -d 'Program that adds DNS entries, to prove that you control a `domain` (DNS-01) [default: none; the authority asks this server]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l state-dir -d 'Folder for the accounts, certificates and keys of `domain` [default: `acme` in systemd\'s `STATE_DIRECTORY`; else `highball` in `XDG_STATE_HOME` or `~/.local/state`]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l redirect-https -d 'Redirect HTTP clients to HTTPS (status 308) [default: `off`; `on` with `domain` and without `bind`]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l hsts -d 'Time for which browsers use only HTTPS for a host (`Strict-Transport-Security`) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -s e -l environment -d 'Environment that the application runs in [default: development] [env: RAILS_ENV] [env: RACK_ENV] [env: APP_ENV]' -r -f -a "development\t''
production\t''
staging\t''
test\t''"
complete -c highball -n "__fish_highball_using_subcommand serve" -l early-hints -d 'Let the application send early hints (status 103) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -s c -l config -d 'Configuration file, instead of the files in the application\'s folder [default: config/highball.toml, highball.toml or config/puma.rb in the application, if there is one]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l puma-config -d 'Apply the application\'s `config/puma.rb` [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l ruby -d 'Ruby that runs the application: a path, or a name to look up in `PATH` [default: the version that the application\'s files and rbenv, mise or asdf choose, else `ruby` in PATH]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l preload -d 'Load the application once, before workers are forked, so that they share its memory [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l jit -d 'Ruby\'s compiler, YJIT (Ruby 3.1 and later) [default: auto]' -r -f -a "auto\t''
on\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand serve" -l allocator -d 'Memory allocator of the application\'s processes [default: auto]' -r -f -a "auto\t''
jemalloc\t''
system\t''"
complete -c highball -n "__fish_highball_using_subcommand serve" -l gc -d 'Tune Ruby\'s garbage collector in production [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l boot-cache -d 'Keep the application\'s Ruby files in compiled form, in production, so that the next boot is faster [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l with -d 'Process that runs beside the application\'s workers, such as background jobs: a name, and a command for the shell [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l procfile -d 'Processes of the application\'s `Procfile` that run beside its workers, as with `process` [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -s w -l workers -d 'Number of worker processes [default: auto; in development 1] [env: WEB_CONCURRENCY]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l min-workers -d 'Smallest number of workers with `workers = auto` [default: 1]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-workers -d 'Largest number of workers with `workers = auto` [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -s t -l threads -d 'Threads in each worker [default: auto] [env: RAILS_MAX_THREADS] [env: PUMA_MAX_THREADS] [env: MAX_THREADS]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l refork-after -d 'Number of requests after which all workers are forked again, from a warm worker [default: auto; in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l rest-mold-after -d 'Time after which the mold ends if there is only one worker [default: 10s; in development none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l memory-limit -d 'Memory of a worker above which Highball replaces it [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l memory-budget -d 'Memory of all processes of the application, above which its largest worker is replaced [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l memory-max -d 'Memory that all processes of the application may have [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l cpu-max -d 'CPUs that all processes of the application may use at a time [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l pidfile -d 'File for the process id of the server [default: none] [env: PIDFILE]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l boot-timeout -d 'Time for the application to boot, and for a worker to start [default: 60s; in development 300s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l drain-timeout -d 'Time for running requests to finish when the server stops or a worker is replaced [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l drain-grace -d 'Time between the signal to stop and the moment when Highball accepts no new connections [default: 0s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l hijacked-drain-timeout -d 'Time for WebSockets and other hijacked connections to end [default: 5s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l probe-path -d 'Path that a new version must answer in a restart before it gets clients\' requests [default: /]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l warm-up -d 'Path that Highball requests from each new worker in a restart or refork, before clients\' requests [default: only the `probe_path`]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l probe-timeout -d 'Time for a new version to answer the request for `probe_path` [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-boot-failures -d 'Number of boots or workers that may fail in a row before they serve [default: 5]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l head-timeout -d 'Time for a request head to arrive, from its first byte [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l tls-handshake-timeout -d 'Time for the TLS handshake of a connection [default: 10s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l body-timeout -d 'Longest pause between two pieces of a request body [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l min-body-rate -d 'Lowest average rate of a request body, in bytes per second [default: 500]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l idle-timeout -d 'Time for which a connection without a request stays open [default: 65s] [env: PUMA_PERSISTENT_TIMEOUT]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l send-timeout -d 'Longest pause in which a client takes nothing of its response [default: 60s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l stream-idle-timeout -d 'Longest pause in which the application writes nothing to a streaming response [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l request-timeout -d 'Time for the application to begin its response [default: 60s; in development none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l request-timeouts -d 'A different `request_timeout` for some paths [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l request-timeout-header -d 'Header field that tells the application how much time is left for a request [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l timeout-interrupts -d 'Raise `Highball::RequestTimeout` in the thread of a request that exceeds its time [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l slow-request -d 'Time from which on a request is slow [default: 2s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-target -d 'Longest request target (path and query) [default: 16k]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-head -d 'Largest request head (request line and header fields) [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-fields -d 'Largest number of header fields in a request [default: 128]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-body -d 'Largest request body [default: 1g]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l body-memory -d 'Largest request body that fits into a worker\'s ring beside the request [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l response-buffer -d 'Memory for the part of a response that the client has not taken [default: 256k]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l response-spool -d 'Largest part of a response in a spool file [default: 1g]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-buffers -d 'Memory for all request bodies and for responses to slow clients [default: an eighth of the memory of the machine or the container, at least 16 MiB]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-connections -d 'Largest number of open client connections [default: 10000]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-tls-handshakes -d 'Largest number of TLS handshakes that are computed or wait for a CPU [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l http2-streams -d 'Largest number of open requests on an HTTP/2 connection [default: 100]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-queue -d 'Largest number of requests that wait for a worker [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-streams -d 'Largest number of streaming responses per worker [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l affinity -d 'Send the requests of a session to the same worker while it lives, for applications that keep sessions in memory, such as MCP servers [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l fibers -d 'Paths whose requests run on fibers: while one waits for a socket, a database or a timer, the others of its worker go on, and it takes no thread [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-fibers -d 'Largest number of requests on `fibers` per worker [default: 5000]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l fiber-scheduler -d 'Ruby class that schedules the fibers of `fibers`, instead of Highball\'s scheduler [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l spool-dir -d 'Folder for large request bodies, and for responses to slow clients [default: /var/tmp if it is writable, else $TMPDIR, else /tmp]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-spool -d 'Total size of all spool files [default: half of the free space in `spool_dir`; a quarter if it is in memory]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l app-max-spool -d 'Total size of the spool files of an application [default: `max_spool`; half of it with several applications]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-cache -d 'Memory for the stored responses of all applications together (`cache` is for each) [default: 256m]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l static-files -d 'Serve the application\'s `public` folder, and assets that need no processing, without Ruby [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l follow-symlinks -d 'Follow symbolic links in the `public` folder [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l compress -d 'Compress responses and static files for clients that accept it (zstd, Brotli, gzip) [default: on; in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l cache -d 'Memory for stored responses of the application; 0 turns the cache off [default: 0]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l sendfile -d 'Folder of files that the application may name in `X-Sendfile` or `X-Accel-Redirect` [default: none: these headers are passed on to a web server in front]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-held -d 'Largest number of [held responses](server-sent-events.md) [default: 10000]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-held-streams -d 'Largest number of streams that a held response may name [default: 32]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-message -d 'Largest message [default: 256k]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l hub-history -d 'Number of messages that each stream keeps for clients that reconnect [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l hub-history-time -d 'Time for which a stream keeps a message for clients that reconnect [default: 5m]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l hub-heartbeat -d 'Interval at which a held response without messages gets a comment, so that proxies do not close it, and Highball notices when the client has left [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l hold-cable -d 'Hold the WebSockets of [Action Cable](action-cable.md) in the server, so that they stay open while workers restart [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l cable -d 'Adapter of [Action Cable](action-cable.md) where `config/cable.yml` has `async` or `inline`, whose broadcasts reach the clients of one worker alone [default: auto]' -r -f -a "auto\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-cable-clients -d 'Largest number of Action Cable WebSockets that the server holds for the application [default: 10000]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-cable-message -d 'Largest message that a client of Action Cable can send [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-cable-streams -d 'Largest number of subscriptions of an Action Cable client, and of streams of all its subscriptions [default: 100]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-hub -d 'Memory for the messages that streams keep, of all applications together [default: 64m]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l admin -d 'Address for health checks (`/livez`, `/readyz`), metrics (`/metrics`) and the dashboard (`/`) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l admin-host -d 'Host name for requests to the `admin` address, besides IP addresses and `localhost` [default: IP addresses, and `localhost` with its subdomains]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l admin-actions -d 'Show buttons on the dashboard: restart, refork, add or remove a worker, replace the worker of a request [default: off]' -r -f -a "on\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand serve" -l agent-check -d 'Address at which load balancers ask how busy the server is, with HAProxy\'s agent check [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l stuck-after -d 'Time without a free thread and without a response after which an application is stuck [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l maintenance-file -d 'File that `highball maintenance on` writes and `off` removes [default: tmp/maintenance.json]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l health-path -d 'Path at which Highball answers health checks of the application, at the addresses for clients [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-output -d 'Output per second of an application of another user, in bytes [default: 1m]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l log-format -d 'Format of the log on standard error: `human` or `json` [default: human]' -r -f -a "human\t''
json\t''"
complete -c highball -n "__fish_highball_using_subcommand serve" -l access-log -d 'File for a line about each request [default: none; in development -]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l access-log-format -d 'Format of the lines of the access log: `combined`, `json`, or a text with names of fields in braces [default: combined; with log_format = json json]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l access-log-sample -d 'Share of the requests that get a line in the access log, chosen at random [default: 100%]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l request-start -d 'Add `X-Request-Start` to the application\'s requests, if no proxy has sent it or `X-Queue-Start` [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l server-timing -d 'Add a `Server-Timing` field to the application\'s responses [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l request-id -d 'Give each request an id, in the field `X-Request-Id` [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l otlp-endpoint -d 'URL of an OpenTelemetry collector, to which Highball sends spans of requests by OTLP over HTTP; it adds `/v1/traces` [default: `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT` in the environment; else `none`]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l server-user -d 'User that the server runs as if root starts Highball [default: `highball` if that user exists, else 65534 (`nobody`)]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l show-diagnosis -d 'Clients that see the details of errors in development [default: link]' -r -f -a "link\t''
local\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand serve" -l user -d 'User that the application runs as, by name or number [default: the user who starts Highball; under root, the owner of the application\'s files]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l rate-limit -d 'Number of requests that each client may send, for all paths or for a path: `10/s`, `/login 5/min`, `/api/* 100/min burst 20` [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l rate-limit-exempt -d 'Client without a `rate_limit`: an address or a network [default: loopback]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l basic-auth -d 'File with users and password hashes for HTTP basic authentication, as `htpasswd -B` writes it [default: none]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l basic-auth-realm -d 'Text that browsers may show when they ask for the password of `basic_auth` [default: Restricted]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l no-new-privs -d 'Deny the application\'s processes more rights than their user has (`no_new_privs` of Linux) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l name -d 'Name of the application in the log and in commands [default: the name of its folder; if that is `current`, of the folder above it]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l hosts -d 'Host name of the application [default: all hosts; with several applications NAME and NAME.localhost, or all hosts with a `prefix`]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l prefix -d 'URL path that the application is served below [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l variables -d 'Environment variable for the application\'s processes, in addition to the variables that Highball passes on [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l pass-variables -d 'Variable of Highball\'s environment to pass on to an application of another user [default: only the variables that `docs/users.md` lists]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l prestart -d 'Boot the application when the server starts [default: on; off in development with several applications]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l sleep-after -d 'Idle time after which the application\'s processes end, to save memory [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand doctor" -s p -l port -d 'TCP port for HTTP addresses that name none [default: 3000] [env: PORT]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -s b -l bind -d 'Address to listen on [default: 0.0.0.0; in development 127.0.0.1] [env: BINDING]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l proxy-protocol -d 'Versions of the PROXY protocol that load balancers send on HTTP connections [default: off]' -r -f -a "off\t''
v1\t''
v2\t''
v1\,v2\t''"
complete -c highball -n "__fish_highball_using_subcommand doctor" -l proxy-protocol-from -d 'Load balancer that may use `proxy_protocol`: an address or a network [default: loopback]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l trusted-proxies -d 'HTTP proxy in front of Highball whose headers are trusted: an address or a network [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l canonical-host -d 'Host name that visitors should use [default: none; every host of the application serves it]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l redirects -d 'Path that has moved, its new path or URL, and optionally a status: 301 (the default), 302, 307 or 308 [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l response-headers -d 'Header field that responses get, for all paths or for a path: `X-Frame-Options: DENY`, `/fonts/* Access-Control-Allow-Origin: *` [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l http2-cleartext -d 'Serve HTTP/2 without TLS on HTTP addresses, to clients that begin with it (prior knowledge) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l https -d 'Serve HTTPS in development with certificates for `localhost` and names below it, such as `blog.localhost` [default: off]' -r -f -a "on\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand doctor" -l tls-certificate -d 'PEM file with a TLS certificate, followed by its intermediate certificates (certbot\'s `fullchain.pem`) [default: none; HTTPS addresses need one]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l tls-key -d 'PEM file with the private key of `tls_certificate`, not encrypted [default: the certificate file]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l tls-client-ca -d 'PEM file with the certificates of the authorities that issue certificates to clients [default: none; clients are asked for no certificate]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l tls-client-auth -d 'Clients that reach an application with `tls_client_ca` [default: required]' -r -f -a "required\t''
optional\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand doctor" -l domain -d 'Domain name to get an automatic certificate for [default: none; no authority is asked]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l domain-on-demand -d 'Domain name whose certificate is obtained when the first client asks for it [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l domain-ask -d 'Path at which the application decides whether a name gets a certificate [default: none; the application is not asked]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l acme-directory -d 'URL of the ACME directory of the authority that issues certificates for `domain` [default: https://acme-v02.api.letsencrypt.org/directory]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l acme-contact -d 'E-mail address for the ACME authority [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l acme-authorities -d 'PEM file with the CA certificate for the server of a private ACME authority [default: the machine\'s certificate authorities]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l acme-eab-kid -d 'Key identifier of your account with the ACME authority (external account binding) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l acme-eab-key-file -d 'File with the HMAC key for `acme_eab_kid`, in Base64, as the authority shows it [default: none]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l acme-dns-hook -d 'Program that adds DNS entries, to prove that you control a `domain` (DNS-01) [default: none; the authority asks this server]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l state-dir -d 'Folder for the accounts, certificates and keys of `domain` [default: `acme` in systemd\'s `STATE_DIRECTORY`; else `highball` in `XDG_STATE_HOME` or `~/.local/state`]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l redirect-https -d 'Redirect HTTP clients to HTTPS (status 308) [default: `off`; `on` with `domain` and without `bind`]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l hsts -d 'Time for which browsers use only HTTPS for a host (`Strict-Transport-Security`) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -s e -l environment -d 'Environment that the application runs in [default: development] [env: RAILS_ENV] [env: RACK_ENV] [env: APP_ENV]' -r -f -a "development\t''
production\t''
staging\t''
test\t''"
complete -c highball -n "__fish_highball_using_subcommand doctor" -l early-hints -d 'Let the application send early hints (status 103) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -s c -l config -d 'Configuration file, instead of the files in the application\'s folder [default: config/highball.toml, highball.toml or config/puma.rb in the application, if there is one]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l puma-config -d 'Apply the application\'s `config/puma.rb` [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l ruby -d 'Ruby that runs the application: a path, or a name to look up in `PATH` [default: the version that the application\'s files and rbenv, mise or asdf choose, else `ruby` in PATH]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l preload -d 'Load the application once, before workers are forked, so that they share its memory [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l jit -d 'Ruby\'s compiler, YJIT (Ruby 3.1 and later) [default: auto]' -r -f -a "auto\t''
on\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand doctor" -l allocator -d 'Memory allocator of the application\'s processes [default: auto]' -r -f -a "auto\t''
jemalloc\t''
system\t''"
complete -c highball -n "__fish_highball_using_subcommand doctor" -l gc -d 'Tune Ruby\'s garbage collector in production [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l boot-cache -d 'Keep the application\'s Ruby files in compiled form, in production, so that the next boot is faster [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l with -d 'Process that runs beside the application\'s workers, such as background jobs: a name, and a command for the shell [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l procfile -d 'Processes of the application\'s `Procfile` that run beside its workers, as with `process` [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -s w -l workers -d 'Number of worker processes [default: auto; in development 1] [env: WEB_CONCURRENCY]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l min-workers -d 'Smallest number of workers with `workers = auto` [default: 1]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-workers -d 'Largest number of workers with `workers = auto` [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -s t -l threads -d 'Threads in each worker [default: auto] [env: RAILS_MAX_THREADS] [env: PUMA_MAX_THREADS] [env: MAX_THREADS]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l refork-after -d 'Number of requests after which all workers are forked again, from a warm worker [default: auto; in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l rest-mold-after -d 'Time after which the mold ends if there is only one worker [default: 10s; in development none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l memory-limit -d 'Memory of a worker above which Highball replaces it [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l memory-budget -d 'Memory of all processes of the application, above which its largest worker is replaced [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l memory-max -d 'Memory that all processes of the application may have [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l cpu-max -d 'CPUs that all processes of the application may use at a time [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l pidfile -d 'File for the process id of the server [default: none] [env: PIDFILE]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l boot-timeout -d 'Time for the application to boot, and for a worker to start [default: 60s; in development 300s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l drain-timeout -d 'Time for running requests to finish when the server stops or a worker is replaced [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l drain-grace -d 'Time between the signal to stop and the moment when Highball accepts no new connections [default: 0s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l hijacked-drain-timeout -d 'Time for WebSockets and other hijacked connections to end [default: 5s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l probe-path -d 'Path that a new version must answer in a restart before it gets clients\' requests [default: /]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l warm-up -d 'Path that Highball requests from each new worker in a restart or refork, before clients\' requests [default: only the `probe_path`]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l probe-timeout -d 'Time for a new version to answer the request for `probe_path` [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-boot-failures -d 'Number of boots or workers that may fail in a row before they serve [default: 5]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l head-timeout -d 'Time for a request head to arrive, from its first byte [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l tls-handshake-timeout -d 'Time for the TLS handshake of a connection [default: 10s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l body-timeout -d 'Longest pause between two pieces of a request body [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l min-body-rate -d 'Lowest average rate of a request body, in bytes per second [default: 500]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l idle-timeout -d 'Time for which a connection without a request stays open [default: 65s] [env: PUMA_PERSISTENT_TIMEOUT]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l send-timeout -d 'Longest pause in which a client takes nothing of its response [default: 60s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l stream-idle-timeout -d 'Longest pause in which the application writes nothing to a streaming response [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l request-timeout -d 'Time for the application to begin its response [default: 60s; in development none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l request-timeouts -d 'A different `request_timeout` for some paths [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l request-timeout-header -d 'Header field that tells the application how much time is left for a request [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l timeout-interrupts -d 'Raise `Highball::RequestTimeout` in the thread of a request that exceeds its time [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l slow-request -d 'Time from which on a request is slow [default: 2s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-target -d 'Longest request target (path and query) [default: 16k]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-head -d 'Largest request head (request line and header fields) [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-fields -d 'Largest number of header fields in a request [default: 128]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-body -d 'Largest request body [default: 1g]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l body-memory -d 'Largest request body that fits into a worker\'s ring beside the request [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l response-buffer -d 'Memory for the part of a response that the client has not taken [default: 256k]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l response-spool -d 'Largest part of a response in a spool file [default: 1g]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-buffers -d 'Memory for all request bodies and for responses to slow clients [default: an eighth of the memory of the machine or the container, at least 16 MiB]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-connections -d 'Largest number of open client connections [default: 10000]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-tls-handshakes -d 'Largest number of TLS handshakes that are computed or wait for a CPU [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l http2-streams -d 'Largest number of open requests on an HTTP/2 connection [default: 100]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-queue -d 'Largest number of requests that wait for a worker [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-streams -d 'Largest number of streaming responses per worker [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l affinity -d 'Send the requests of a session to the same worker while it lives, for applications that keep sessions in memory, such as MCP servers [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l fibers -d 'Paths whose requests run on fibers: while one waits for a socket, a database or a timer, the others of its worker go on, and it takes no thread [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-fibers -d 'Largest number of requests on `fibers` per worker [default: 5000]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l fiber-scheduler -d 'Ruby class that schedules the fibers of `fibers`, instead of Highball\'s scheduler [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l spool-dir -d 'Folder for large request bodies, and for responses to slow clients [default: /var/tmp if it is writable, else $TMPDIR, else /tmp]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-spool -d 'Total size of all spool files [default: half of the free space in `spool_dir`; a quarter if it is in memory]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l app-max-spool -d 'Total size of the spool files of an application [default: `max_spool`; half of it with several applications]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-cache -d 'Memory for the stored responses of all applications together (`cache` is for each) [default: 256m]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l static-files -d 'Serve the application\'s `public` folder, and assets that need no processing, without Ruby [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l follow-symlinks -d 'Follow symbolic links in the `public` folder [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l compress -d 'Compress responses and static files for clients that accept it (zstd, Brotli, gzip) [default: on; in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l cache -d 'Memory for stored responses of the application; 0 turns the cache off [default: 0]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l sendfile -d 'Folder of files that the application may name in `X-Sendfile` or `X-Accel-Redirect` [default: none: these headers are passed on to a web server in front]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-held -d 'Largest number of [held responses](server-sent-events.md) [default: 10000]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-held-streams -d 'Largest number of streams that a held response may name [default: 32]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-message -d 'Largest message [default: 256k]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l hub-history -d 'Number of messages that each stream keeps for clients that reconnect [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l hub-history-time -d 'Time for which a stream keeps a message for clients that reconnect [default: 5m]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l hub-heartbeat -d 'Interval at which a held response without messages gets a comment, so that proxies do not close it, and Highball notices when the client has left [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l hold-cable -d 'Hold the WebSockets of [Action Cable](action-cable.md) in the server, so that they stay open while workers restart [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l cable -d 'Adapter of [Action Cable](action-cable.md) where `config/cable.yml` has `async` or `inline`, whose broadcasts reach the clients of one worker alone [default: auto]' -r -f -a "auto\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-cable-clients -d 'Largest number of Action Cable WebSockets that the server holds for the application [default: 10000]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-cable-message -d 'Largest message that a client of Action Cable can send [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-cable-streams -d 'Largest number of subscriptions of an Action Cable client, and of streams of all its subscriptions [default: 100]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-hub -d 'Memory for the messages that streams keep, of all applications together [default: 64m]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l admin -d 'Address for health checks (`/livez`, `/readyz`), metrics (`/metrics`) and the dashboard (`/`) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l admin-host -d 'Host name for requests to the `admin` address, besides IP addresses and `localhost` [default: IP addresses, and `localhost` with its subdomains]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l admin-actions -d 'Show buttons on the dashboard: restart, refork, add or remove a worker, replace the worker of a request [default: off]' -r -f -a "on\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand doctor" -l agent-check -d 'Address at which load balancers ask how busy the server is, with HAProxy\'s agent check [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l stuck-after -d 'Time without a free thread and without a response after which an application is stuck [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l maintenance-file -d 'File that `highball maintenance on` writes and `off` removes [default: tmp/maintenance.json]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l health-path -d 'Path at which Highball answers health checks of the application, at the addresses for clients [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-output -d 'Output per second of an application of another user, in bytes [default: 1m]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l log-format -d 'Format of the log on standard error: `human` or `json` [default: human]' -r -f -a "human\t''
json\t''"
complete -c highball -n "__fish_highball_using_subcommand doctor" -l access-log -d 'File for a line about each request [default: none; in development -]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l access-log-format -d 'Format of the lines of the access log: `combined`, `json`, or a text with names of fields in braces [default: combined; with log_format = json json]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l access-log-sample -d 'Share of the requests that get a line in the access log, chosen at random [default: 100%]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l request-start -d 'Add `X-Request-Start` to the application\'s requests, if no proxy has sent it or `X-Queue-Start` [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l server-timing -d 'Add a `Server-Timing` field to the application\'s responses [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l request-id -d 'Give each request an id, in the field `X-Request-Id` [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l otlp-endpoint -d 'URL of an OpenTelemetry collector, to which Highball sends spans of requests by OTLP over HTTP; it adds `/v1/traces` [default: `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT` in the environment; else `none`]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l server-user -d 'User that the server runs as if root starts Highball [default: `highball` if that user exists, else 65534 (`nobody`)]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l show-diagnosis -d 'Clients that see the details of errors in development [default: link]' -r -f -a "link\t''
local\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand doctor" -l user -d 'User that the application runs as, by name or number [default: the user who starts Highball; under root, the owner of the application\'s files]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l rate-limit -d 'Number of requests that each client may send, for all paths or for a path: `10/s`, `/login 5/min`, `/api/* 100/min burst 20` [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l rate-limit-exempt -d 'Client without a `rate_limit`: an address or a network [default: loopback]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l basic-auth -d 'File with users and password hashes for HTTP basic authentication, as `htpasswd -B` writes it [default: none]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l basic-auth-realm -d 'Text that browsers may show when they ask for the password of `basic_auth` [default: Restricted]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l no-new-privs -d 'Deny the application\'s processes more rights than their user has (`no_new_privs` of Linux) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l name -d 'Name of the application in the log and in commands [default: the name of its folder; if that is `current`, of the folder above it]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l hosts -d 'Host name of the application [default: all hosts; with several applications NAME and NAME.localhost, or all hosts with a `prefix`]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l prefix -d 'URL path that the application is served below [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l variables -d 'Environment variable for the application\'s processes, in addition to the variables that Highball passes on [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l pass-variables -d 'Variable of Highball\'s environment to pass on to an application of another user [default: only the variables that `docs/users.md` lists]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l prestart -d 'Boot the application when the server starts [default: on; off in development with several applications]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l sleep-after -d 'Idle time after which the application\'s processes end, to save memory [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l json -d 'Print JSON, for programs'
complete -c highball -n "__fish_highball_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand config" -s p -l port -d 'TCP port for HTTP addresses that name none [default: 3000] [env: PORT]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -s b -l bind -d 'Address to listen on [default: 0.0.0.0; in development 127.0.0.1] [env: BINDING]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l proxy-protocol -d 'Versions of the PROXY protocol that load balancers send on HTTP connections [default: off]' -r -f -a "off\t''
v1\t''
v2\t''
v1\,v2\t''"
complete -c highball -n "__fish_highball_using_subcommand config" -l proxy-protocol-from -d 'Load balancer that may use `proxy_protocol`: an address or a network [default: loopback]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l trusted-proxies -d 'HTTP proxy in front of Highball whose headers are trusted: an address or a network [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l canonical-host -d 'Host name that visitors should use [default: none; every host of the application serves it]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l redirects -d 'Path that has moved, its new path or URL, and optionally a status: 301 (the default), 302, 307 or 308 [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l response-headers -d 'Header field that responses get, for all paths or for a path: `X-Frame-Options: DENY`, `/fonts/* Access-Control-Allow-Origin: *` [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l http2-cleartext -d 'Serve HTTP/2 without TLS on HTTP addresses, to clients that begin with it (prior knowledge) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l https -d 'Serve HTTPS in development with certificates for `localhost` and names below it, such as `blog.localhost` [default: off]' -r -f -a "on\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand config" -l tls-certificate -d 'PEM file with a TLS certificate, followed by its intermediate certificates (certbot\'s `fullchain.pem`) [default: none; HTTPS addresses need one]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l tls-key -d 'PEM file with the private key of `tls_certificate`, not encrypted [default: the certificate file]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l tls-client-ca -d 'PEM file with the certificates of the authorities that issue certificates to clients [default: none; clients are asked for no certificate]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l tls-client-auth -d 'Clients that reach an application with `tls_client_ca` [default: required]' -r -f -a "required\t''
optional\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand config" -l domain -d 'Domain name to get an automatic certificate for [default: none; no authority is asked]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l domain-on-demand -d 'Domain name whose certificate is obtained when the first client asks for it [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l domain-ask -d 'Path at which the application decides whether a name gets a certificate [default: none; the application is not asked]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l acme-directory -d 'URL of the ACME directory of the authority that issues certificates for `domain` [default: https://acme-v02.api.letsencrypt.org/directory]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l acme-contact -d 'E-mail address for the ACME authority [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l acme-authorities -d 'PEM file with the CA certificate for the server of a private ACME authority [default: the machine\'s certificate authorities]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l acme-eab-kid -d 'Key identifier of your account with the ACME authority (external account binding) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l acme-eab-key-file -d 'File with the HMAC key for `acme_eab_kid`, in Base64, as the authority shows it [default: none]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l acme-dns-hook -d 'Program that adds DNS entries, to prove that you control a `domain` (DNS-01) [default: none; the authority asks this server]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l state-dir -d 'Folder for the accounts, certificates and keys of `domain` [default: `acme` in systemd\'s `STATE_DIRECTORY`; else `highball` in `XDG_STATE_HOME` or `~/.local/state`]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l redirect-https -d 'Redirect HTTP clients to HTTPS (status 308) [default: `off`; `on` with `domain` and without `bind`]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l hsts -d 'Time for which browsers use only HTTPS for a host (`Strict-Transport-Security`) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -s e -l environment -d 'Environment that the application runs in [default: development] [env: RAILS_ENV] [env: RACK_ENV] [env: APP_ENV]' -r -f -a "development\t''
production\t''
staging\t''
test\t''"
complete -c highball -n "__fish_highball_using_subcommand config" -l early-hints -d 'Let the application send early hints (status 103) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -s c -l config -d 'Configuration file, instead of the files in the application\'s folder [default: config/highball.toml, highball.toml or config/puma.rb in the application, if there is one]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l puma-config -d 'Apply the application\'s `config/puma.rb` [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l ruby -d 'Ruby that runs the application: a path, or a name to look up in `PATH` [default: the version that the application\'s files and rbenv, mise or asdf choose, else `ruby` in PATH]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l preload -d 'Load the application once, before workers are forked, so that they share its memory [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l jit -d 'Ruby\'s compiler, YJIT (Ruby 3.1 and later) [default: auto]' -r -f -a "auto\t''
on\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand config" -l allocator -d 'Memory allocator of the application\'s processes [default: auto]' -r -f -a "auto\t''
jemalloc\t''
system\t''"
complete -c highball -n "__fish_highball_using_subcommand config" -l gc -d 'Tune Ruby\'s garbage collector in production [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l boot-cache -d 'Keep the application\'s Ruby files in compiled form, in production, so that the next boot is faster [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l with -d 'Process that runs beside the application\'s workers, such as background jobs: a name, and a command for the shell [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l procfile -d 'Processes of the application\'s `Procfile` that run beside its workers, as with `process` [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -s w -l workers -d 'Number of worker processes [default: auto; in development 1] [env: WEB_CONCURRENCY]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l min-workers -d 'Smallest number of workers with `workers = auto` [default: 1]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-workers -d 'Largest number of workers with `workers = auto` [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -s t -l threads -d 'Threads in each worker [default: auto] [env: RAILS_MAX_THREADS] [env: PUMA_MAX_THREADS] [env: MAX_THREADS]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l refork-after -d 'Number of requests after which all workers are forked again, from a warm worker [default: auto; in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l rest-mold-after -d 'Time after which the mold ends if there is only one worker [default: 10s; in development none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l memory-limit -d 'Memory of a worker above which Highball replaces it [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l memory-budget -d 'Memory of all processes of the application, above which its largest worker is replaced [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l memory-max -d 'Memory that all processes of the application may have [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l cpu-max -d 'CPUs that all processes of the application may use at a time [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l pidfile -d 'File for the process id of the server [default: none] [env: PIDFILE]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l boot-timeout -d 'Time for the application to boot, and for a worker to start [default: 60s; in development 300s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l drain-timeout -d 'Time for running requests to finish when the server stops or a worker is replaced [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l drain-grace -d 'Time between the signal to stop and the moment when Highball accepts no new connections [default: 0s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l hijacked-drain-timeout -d 'Time for WebSockets and other hijacked connections to end [default: 5s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l probe-path -d 'Path that a new version must answer in a restart before it gets clients\' requests [default: /]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l warm-up -d 'Path that Highball requests from each new worker in a restart or refork, before clients\' requests [default: only the `probe_path`]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l probe-timeout -d 'Time for a new version to answer the request for `probe_path` [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-boot-failures -d 'Number of boots or workers that may fail in a row before they serve [default: 5]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l head-timeout -d 'Time for a request head to arrive, from its first byte [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l tls-handshake-timeout -d 'Time for the TLS handshake of a connection [default: 10s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l body-timeout -d 'Longest pause between two pieces of a request body [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l min-body-rate -d 'Lowest average rate of a request body, in bytes per second [default: 500]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l idle-timeout -d 'Time for which a connection without a request stays open [default: 65s] [env: PUMA_PERSISTENT_TIMEOUT]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l send-timeout -d 'Longest pause in which a client takes nothing of its response [default: 60s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l stream-idle-timeout -d 'Longest pause in which the application writes nothing to a streaming response [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l request-timeout -d 'Time for the application to begin its response [default: 60s; in development none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l request-timeouts -d 'A different `request_timeout` for some paths [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l request-timeout-header -d 'Header field that tells the application how much time is left for a request [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l timeout-interrupts -d 'Raise `Highball::RequestTimeout` in the thread of a request that exceeds its time [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l slow-request -d 'Time from which on a request is slow [default: 2s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-target -d 'Longest request target (path and query) [default: 16k]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-head -d 'Largest request head (request line and header fields) [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-fields -d 'Largest number of header fields in a request [default: 128]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-body -d 'Largest request body [default: 1g]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l body-memory -d 'Largest request body that fits into a worker\'s ring beside the request [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l response-buffer -d 'Memory for the part of a response that the client has not taken [default: 256k]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l response-spool -d 'Largest part of a response in a spool file [default: 1g]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-buffers -d 'Memory for all request bodies and for responses to slow clients [default: an eighth of the memory of the machine or the container, at least 16 MiB]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-connections -d 'Largest number of open client connections [default: 10000]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-tls-handshakes -d 'Largest number of TLS handshakes that are computed or wait for a CPU [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l http2-streams -d 'Largest number of open requests on an HTTP/2 connection [default: 100]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-queue -d 'Largest number of requests that wait for a worker [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-streams -d 'Largest number of streaming responses per worker [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l affinity -d 'Send the requests of a session to the same worker while it lives, for applications that keep sessions in memory, such as MCP servers [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l fibers -d 'Paths whose requests run on fibers: while one waits for a socket, a database or a timer, the others of its worker go on, and it takes no thread [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-fibers -d 'Largest number of requests on `fibers` per worker [default: 5000]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l fiber-scheduler -d 'Ruby class that schedules the fibers of `fibers`, instead of Highball\'s scheduler [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l spool-dir -d 'Folder for large request bodies, and for responses to slow clients [default: /var/tmp if it is writable, else $TMPDIR, else /tmp]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l max-spool -d 'Total size of all spool files [default: half of the free space in `spool_dir`; a quarter if it is in memory]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l app-max-spool -d 'Total size of the spool files of an application [default: `max_spool`; half of it with several applications]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-cache -d 'Memory for the stored responses of all applications together (`cache` is for each) [default: 256m]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l static-files -d 'Serve the application\'s `public` folder, and assets that need no processing, without Ruby [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l follow-symlinks -d 'Follow symbolic links in the `public` folder [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l compress -d 'Compress responses and static files for clients that accept it (zstd, Brotli, gzip) [default: on; in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l cache -d 'Memory for stored responses of the application; 0 turns the cache off [default: 0]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l sendfile -d 'Folder of files that the application may name in `X-Sendfile` or `X-Accel-Redirect` [default: none: these headers are passed on to a web server in front]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-held -d 'Largest number of [held responses](server-sent-events.md) [default: 10000]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-held-streams -d 'Largest number of streams that a held response may name [default: 32]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-message -d 'Largest message [default: 256k]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l hub-history -d 'Number of messages that each stream keeps for clients that reconnect [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l hub-history-time -d 'Time for which a stream keeps a message for clients that reconnect [default: 5m]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l hub-heartbeat -d 'Interval at which a held response without messages gets a comment, so that proxies do not close it, and Highball notices when the client has left [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l hold-cable -d 'Hold the WebSockets of [Action Cable](action-cable.md) in the server, so that they stay open while workers restart [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l cable -d 'Adapter of [Action Cable](action-cable.md) where `config/cable.yml` has `async` or `inline`, whose broadcasts reach the clients of one worker alone [default: auto]' -r -f -a "auto\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand config" -l max-cable-clients -d 'Largest number of Action Cable WebSockets that the server holds for the application [default: 10000]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-cable-message -d 'Largest message that a client of Action Cable can send [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-cable-streams -d 'Largest number of subscriptions of an Action Cable client, and of streams of all its subscriptions [default: 100]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-hub -d 'Memory for the messages that streams keep, of all applications together [default: 64m]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l admin -d 'Address for health checks (`/livez`, `/readyz`), metrics (`/metrics`) and the dashboard (`/`) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l admin-host -d 'Host name for requests to the `admin` address, besides IP addresses and `localhost` [default: IP addresses, and `localhost` with its subdomains]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l admin-actions -d 'Show buttons on the dashboard: restart, refork, add or remove a worker, replace the worker of a request [default: off]' -r -f -a "on\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand config" -l agent-check -d 'Address at which load balancers ask how busy the server is, with HAProxy\'s agent check [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l stuck-after -d 'Time without a free thread and without a response after which an application is stuck [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l maintenance-file -d 'File that `highball maintenance on` writes and `off` removes [default: tmp/maintenance.json]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l health-path -d 'Path at which Highball answers health checks of the application, at the addresses for clients [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-output -d 'Output per second of an application of another user, in bytes [default: 1m]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l log-format -d 'Format of the log on standard error: `human` or `json` [default: human]' -r -f -a "human\t''
json\t''"
complete -c highball -n "__fish_highball_using_subcommand config" -l access-log -d 'File for a line about each request [default: none; in development -]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l access-log-format -d 'Format of the lines of the access log: `combined`, `json`, or a text with names of fields in braces [default: combined; with log_format = json json]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l access-log-sample -d 'Share of the requests that get a line in the access log, chosen at random [default: 100%]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l request-start -d 'Add `X-Request-Start` to the application\'s requests, if no proxy has sent it or `X-Queue-Start` [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l server-timing -d 'Add a `Server-Timing` field to the application\'s responses [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l request-id -d 'Give each request an id, in the field `X-Request-Id` [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l otlp-endpoint -d 'URL of an OpenTelemetry collector, to which Highball sends spans of requests by OTLP over HTTP; it adds `/v1/traces` [default: `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT` in the environment; else `none`]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l server-user -d 'User that the server runs as if root starts Highball [default: `highball` if that user exists, else 65534 (`nobody`)]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l show-diagnosis -d 'Clients that see the details of errors in development [default: link]' -r -f -a "link\t''
local\t''
off\t''"
complete -c highball -n "__fish_highball_using_subcommand config" -l user -d 'User that the application runs as, by name or number [default: the user who starts Highball; under root, the owner of the application\'s files]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l rate-limit -d 'Number of requests that each client may send, for all paths or for a path: `10/s`, `/login 5/min`, `/api/* 100/min burst 20` [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l rate-limit-exempt -d 'Client without a `rate_limit`: an address or a network [default: loopback]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l basic-auth -d 'File with users and password hashes for HTTP basic authentication, as `htpasswd -B` writes it [default: none]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l basic-auth-realm -d 'Text that browsers may show when they ask for the password of `basic_auth` [default: Restricted]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l no-new-privs -d 'Deny the application\'s processes more rights than their user has (`no_new_privs` of Linux) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l name -d 'Name of the application in the log and in commands [default: the name of its folder; if that is `current`, of the folder above it]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l hosts -d 'Host name of the application [default: all hosts; with several applications NAME and NAME.localhost, or all hosts with a `prefix`]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l prefix -d 'URL path that the application is served below [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l variables -d 'Environment variable for the application\'s processes, in addition to the variables that Highball passes on [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l pass-variables -d 'Variable of Highball\'s environment to pass on to an application of another user [default: only the variables that `docs/users.md` lists]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l prestart -d 'Boot the application when the server starts [default: on; off in development with several applications]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l sleep-after -d 'Idle time after which the application\'s processes end, to save memory [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l via -d 'Protocol by which the program reaches Highball [default: http, if Highball listens for it]' -r -f -a "http\t''
fastcgi\t''"
complete -c highball -n "__fish_highball_using_subcommand config" -l host -d 'Host name that visitors ask for [default: the folder\'s name and `.localhost`]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l machines -d 'Host names or IP addresses of the machines that serve it, with commas between them: for haproxy and kamal' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l memory -d 'Memory of the server on each machine, as `highball memory` reports it: for kubernetes, kamal and nomad [default: an estimate]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand init" -l dry-run -d 'Print what would be written, and write nothing'
complete -c highball -n "__fish_highball_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand status" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand status" -l details -d 'Also show backtraces, earlier failures, and how Ruby is tuned'
complete -c highball -n "__fish_highball_using_subcommand status" -l slow -d 'Show the last slow requests, and where their time went (option `slow_request`)'
complete -c highball -n "__fish_highball_using_subcommand status" -l json -d 'Print JSON, for programs'
complete -c highball -n "__fish_highball_using_subcommand status" -l check -d 'Exit with 1 unless all applications serve: for health checks'
complete -c highball -n "__fish_highball_using_subcommand status" -s h -l help -d 'Print help'
complete -c highball -n "__fish_highball_using_subcommand top" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand top" -l once -d 'Print one snapshot, for scripts and logs'
complete -c highball -n "__fish_highball_using_subcommand top" -l backtraces -d 'Print one snapshot, with the backtraces of all requests'
complete -c highball -n "__fish_highball_using_subcommand top" -l json -d 'Print one snapshot as JSON, for programs'
complete -c highball -n "__fish_highball_using_subcommand top" -l token -d 'Print the token for actions in the dashboard (option `admin_actions`)'
complete -c highball -n "__fish_highball_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand profile" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand profile" -l seconds -d 'For how long, at most 300 [default: 10]' -r
complete -c highball -n "__fish_highball_using_subcommand profile" -l worker -d 'Only the worker with this number, as `highball status` shows it [default: all workers]' -r
complete -c highball -n "__fish_highball_using_subcommand profile" -l mode -d 'What to sample: threads that compute (cpu), all busy threads (wall), threads that wait for the GVL (gvl; Ruby 3.2 or later), or new objects (allocations) [default: cpu]' -r -f -a "cpu\t''
wall\t''
gvl\t''
allocations\t''"
complete -c highball -n "__fish_highball_using_subcommand profile" -l group -d 'Group the samples by the method and path of their requests' -r -f -a "path\t''"
complete -c highball -n "__fish_highball_using_subcommand profile" -s o -l output -d 'New file to write, or - for standard output [default: profile-APP.html in the current folder]' -r -F
complete -c highball -n "__fish_highball_using_subcommand profile" -l format -d 'A page with a flame graph (html), a line for each stack (folded), or a file for pprof or speedscope [default: by the file\'s name, else html]' -r -f -a "html\t''
folded\t''
pprof\t''
speedscope\t''"
complete -c highball -n "__fish_highball_using_subcommand profile" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand restart" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand restart" -s h -l help -d 'Print help'
complete -c highball -n "__fish_highball_using_subcommand rollout" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand rollout" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand refork" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand refork" -s h -l help -d 'Print help'
complete -c highball -n "__fish_highball_using_subcommand upgrade" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand upgrade" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand maintenance" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand maintenance" -l message -d 'Message on the page' -r
complete -c highball -n "__fish_highball_using_subcommand maintenance" -l retry-after -d 'Time after which visitors and search engines come back [default: 10m]' -r
complete -c highball -n "__fish_highball_using_subcommand maintenance" -l allow -d 'Address or network whose clients reach the application; you can repeat it' -r
complete -c highball -n "__fish_highball_using_subcommand maintenance" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand stop" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand stop" -s h -l help -d 'Print help'
complete -c highball -n "__fish_highball_using_subcommand memory" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand memory" -l gc -d 'First run a full garbage collection in every worker; requests wait for it'
complete -c highball -n "__fish_highball_using_subcommand memory" -l json -d 'Print JSON, for programs'
complete -c highball -n "__fish_highball_using_subcommand memory" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "serve" -d 'Serve the application at PATH, or several (the same as no command)'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "doctor" -d 'Boot the app once, without serving it, and report current and likely problems'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "config" -d 'Print a configuration for nginx, HAProxy, systemd, Kubernetes and other programs'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "init" -d 'Write a configuration file, a Procfile and a systemd unit for the app'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "status" -d 'Show the state of running servers and their applications'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "top" -d 'Watch a running server: its workers and their requests'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "profile" -d 'Show where the time of a running application goes, as a flame graph'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "restart" -d 'Load new code without dropping requests (rolling restart)'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "rollout" -d 'Give a share of the visitors the new code, then more of them, or go back'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "refork" -d 'Fork all workers again from a warm one, so that they share more memory'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "upgrade" -d 'Start a new Highball in place of the running one, without dropping requests'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "maintenance" -d 'Show visitors a maintenance page, or the application again'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "stop" -d 'Let a running server finish its requests and exit'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "memory" -d 'Show the memory of running servers and their Ruby heaps'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "bench" -d 'Measure an application, or compare ways to deploy it'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
