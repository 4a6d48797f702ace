# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_highball_global_optspecs
    string join \n p/port= b/bind= https= tls-certificate= tls-key= domain= domain-on-demand= domain-ask= acme-directory= acme-contact= acme-authorities= acme-eab-kid= acme-eab-key-file= acme-dns-hook= state-dir= redirect-https= hsts= proxy-protocol= proxy-protocol-from= trusted-proxies= http2-cleartext= e/environment= w/workers= min-workers= max-workers= t/threads= early-hints= c/config= puma-config= ruby= server-user= pidfile= admin= admin-host= admin-actions= agent-check= stuck-after= health-path= show-diagnosis= name= hosts= prefix= variables= pass-variables= user= prestart= sleep-after= max-target= max-head= max-fields= max-body= body-memory= response-buffer= response-spool= max-buffers= max-connections= max-tls-handshakes= http2-streams= max-queue= spool-dir= max-spool= app-max-spool= max-cache= head-timeout= tls-handshake-timeout= body-timeout= min-body-rate= idle-timeout= send-timeout= request-timeout= request-timeouts= request-timeout-header= timeout-interrupts= static-files= follow-symlinks= compress= cache= sendfile= basic-auth= basic-auth-realm= boot-timeout= drain-timeout= drain-grace= hijacked-drain-timeout= probe-path= warm-up= probe-timeout= preload= jit= allocator= gc= boot-cache= no-new-privs= refork-after= rest-mold-after= memory-limit= memory-budget= memory-max= cpu-max= max-boot-failures= max-output= log-format= access-log= access-log-format= access-log-sample= request-start= server-timing= request-id= h/help V/version
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

complete -c highball -n "__fish_highball_needs_command" -s p -l port -d 'TCP port for every address that does not name one [default: 3000] [env: PORT]' -r
complete -c highball -n "__fish_highball_needs_command" -s b -l bind -d 'Address to listen on [default: 0.0.0.0; in development 127.0.0.1] [env: BINDING]' -r
complete -c highball -n "__fish_highball_needs_command" -l https -d 'Serves HTTPS in development, with certificates for `localhost` and all names below it, such as `blog.localhost` [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l tls-certificate -d 'File with a TLS certificate (PEM), and behind it those that lead to its authority: what certbot calls `fullchain.pem` [default: none; an address for HTTPS needs one]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l tls-key -d 'File with the private key of the certificate (PEM, not encrypted) [default: the file of the certificate]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l domain -d 'Name for which a certificate is obtained, and renewed, from an authority that speaks ACME, Let\'s Encrypt by default [default: none; no authority is asked]' -r
complete -c highball -n "__fish_highball_needs_command" -l domain-on-demand -d 'Name for which a certificate is obtained as with `domain`, but not before a client asks for it [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l domain-ask -d 'Path by which the application says whether a certificate is to be obtained for a name that a client asks for, and that no option names: it is sent `GET PATH?domain=NAME`, and says yes with status 200 [default: none; the application is not asked]' -r
complete -c highball -n "__fish_highball_needs_command" -l acme-directory -d 'The authority for the certificates of `domain`: the URL of its ACME directory [default: https://acme-v02.api.letsencrypt.org/directory]' -r
complete -c highball -n "__fish_highball_needs_command" -l acme-contact -d 'E-mail address for the authority, which some require [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l acme-authorities -d 'File with the certificate (PEM) that vouches for the server of a private ACME authority [default: the certificate authorities of this machine]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l acme-eab-kid -d 'What the authority calls the account that you have made with it on its site (external account binding), if it requires one [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l acme-eab-key-file -d 'File with the HMAC key of that account, in Base64, as the authority shows it [default: none]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l acme-dns-hook -d 'Program that makes entries in the DNS, by which the authority sees that a `domain` is yours (DNS-01) [default: none; the authority looks at this server]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l state-dir -d 'Folder for what `domain` obtains: accounts, certificates and keys [default: `acme` in systemd\'s `STATE_DIRECTORY`; else `highball` in `XDG_STATE_HOME` or `~/.local/state`]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l redirect-https -d 'Whether clients of HTTP addresses are sent to HTTPS (status 308) [default: `off`; `on` with `domain` and without `bind`]' -r
complete -c highball -n "__fish_highball_needs_command" -l hsts -d 'Time for which browsers use HTTPS alone for a host that they have reached over HTTPS (`Strict-Transport-Security`) [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l proxy-protocol -d 'Versions of the PROXY protocol in which proxies report the client of each HTTP connection [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l proxy-protocol-from -d 'Proxy that is trusted with `proxy_protocol`: an address or a network [default: loopback]' -r
complete -c highball -n "__fish_highball_needs_command" -l trusted-proxies -d 'Proxy in front, by HTTP, that is believed what it reports of each request: an address or a network [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l http2-cleartext -d 'Whether HTTP addresses without TLS also serve HTTP/2 to clients that begin with it (prior knowledge), for example load balancers and service meshes [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -s e -l environment -d 'Environment that the application runs in [default: development] [env: RAILS_ENV] [env: RACK_ENV] [env: APP_ENV]' -r
complete -c highball -n "__fish_highball_needs_command" -s w -l workers -d 'Worker processes [default: auto; in development 1] [env: WEB_CONCURRENCY]' -r
complete -c highball -n "__fish_highball_needs_command" -l min-workers -d 'The least workers with `workers = auto`: their number when no requests arrive [default: 1]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-workers -d 'The most workers with `workers = auto` [default: auto]' -r
complete -c highball -n "__fish_highball_needs_command" -s t -l threads -d 'Threads in each worker [default: 3] [env: RAILS_MAX_THREADS] [env: PUMA_MAX_THREADS] [env: MAX_THREADS]' -r
complete -c highball -n "__fish_highball_needs_command" -l early-hints -d 'Whether the application may send early hints (status 103) [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -s c -l config -d 'Configuration file, in the place of those in the application [default: config/highball.toml, highball.toml or config/puma.rb in the application, where there is one]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l puma-config -d 'Whether the application\'s `config/puma.rb` counts for what nothing else sets, and its hooks run [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l ruby -d 'Ruby to run the application with [default: the one that the application\'s version file and rbenv, mise or asdf choose, else `ruby` in PATH]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l server-user -d 'User that the server itself runs as where root starts it: the processes that read what clients send [default: `highball` if there is such a user, else the number 65534 (nobody)]' -r
complete -c highball -n "__fish_highball_needs_command" -l pidfile -d 'File to write the process id to [default: none is written] [env: PIDFILE]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l admin -d 'Address for health checks (`/livez`, `/readyz`), metrics (`/metrics`) and a dashboard (`/`), apart from the addresses of the applications: an IP address with or without a port (9394), or `unix:/path` [default: there is none]' -r
complete -c highball -n "__fish_highball_needs_command" -l admin-host -d 'Host name by which the addresses of `admin` are reached, beside IP addresses and `localhost` [default: IP addresses, and `localhost` with its subdomains]' -r
complete -c highball -n "__fish_highball_needs_command" -l admin-actions -d 'Whether the dashboard at the addresses of `admin` has buttons: restart, refork, more and fewer workers, replace the worker of a request [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l agent-check -d 'Address at which a load balancer asks how busy this server is, by HAProxy\'s agent check: an IP address with or without a port (9395) [default: there is none]' -r
complete -c highball -n "__fish_highball_needs_command" -l stuck-after -d 'Time without a free thread, and without an answer to any request, after which an application counts as stuck: `/readyz` then answers 503, so that load balancers send requests elsewhere [default: 15s]' -r
complete -c highball -n "__fish_highball_needs_command" -l health-path -d 'Path at which Highball answers a health check of the application by itself, at the addresses for clients, as `/readyz/NAME` does at those of `admin`: 200 or 503 with a word, also while all its threads are busy [default: there is none]' -r
complete -c highball -n "__fish_highball_needs_command" -l show-diagnosis -d 'Which clients get the details of errors in development [default: link]' -r
complete -c highball -n "__fish_highball_needs_command" -l name -d 'Name of the application in the log and in commands [default: the name of its folder; where that is `current`, of the folder around it]' -r
complete -c highball -n "__fish_highball_needs_command" -l hosts -d 'Host name that the application is reached by [default: every one; with several applications NAME and NAME.localhost, or with a `prefix` every one]' -r
complete -c highball -n "__fish_highball_needs_command" -l prefix -d 'Path that the application is reached below [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l variables -d 'Variable in the environment of the application\'s processes, beside those that Highball was started with [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l pass-variables -d 'Variable of Highball\'s own environment that an application of another user gets as well [default: only those that `docs/users.md` lists]' -r
complete -c highball -n "__fish_highball_needs_command" -l user -d 'User that the application runs as, by name or number [default: who started Highball; where that is root, the owner of the application\'s files]' -r
complete -c highball -n "__fish_highball_needs_command" -l prestart -d 'Whether the application boots when the server starts, instead of at its first request [default: on; with several applications in development off]' -r
complete -c highball -n "__fish_highball_needs_command" -l sleep-after -d 'Stop an idle application after this time [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-target -d 'Longest request target (path and query) [default: 16k]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-head -d 'Largest request head (request line and header fields) [default: 64k]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-fields -d 'Most header fields in a request [default: 128]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-body -d 'Largest request body [default: 1g]' -r
complete -c highball -n "__fish_highball_needs_command" -l body-memory -d 'How much of a request body fits beside the request in a worker\'s ring [default: 64k]' -r
complete -c highball -n "__fish_highball_needs_command" -l response-buffer -d 'How much of a response is held in memory for a client, before its worker has to wait [default: 256k]' -r
complete -c highball -n "__fish_highball_needs_command" -l response-spool -d 'How much of a response goes to a spool file when a slow client would keep its worker waiting for longer than a quarter of a second [default: 1g]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-buffers -d 'How much memory request bodies and the responses for slow clients may hold in all [default: an eighth of the memory of the machine or the container, at least 16 MiB]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-connections -d 'Most open client connections [default: 10000]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-tls-handshakes -d 'TLS handshakes that are computed or wait for a processor at a time [default: 1000]' -r
complete -c highball -n "__fish_highball_needs_command" -l http2-streams -d 'Most requests that an HTTP/2 connection may have open at a time [default: 100]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-queue -d 'Most requests that wait for a worker [default: 1000]' -r
complete -c highball -n "__fish_highball_needs_command" -l spool-dir -d 'Folder for large request bodies while they arrive [default: /var/tmp where it can be written to, else $TMPDIR, else /tmp]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l max-spool -d 'How much all spool files together may hold [default: half of the room in `spool_dir`; a quarter, if that lies in memory]' -r
complete -c highball -n "__fish_highball_needs_command" -l app-max-spool -d 'How much the spool files of one application may hold [default: all of `max_spool`; with several applications half of it]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-cache -d 'How much memory the stored responses of all applications may take (`cache`) [default: 256m]' -r
complete -c highball -n "__fish_highball_needs_command" -l head-timeout -d 'Time for a request head to arrive whole, from its first byte [default: 15s]' -r
complete -c highball -n "__fish_highball_needs_command" -l tls-handshake-timeout -d 'Time for the TLS handshake of a connection [default: 10s]' -r
complete -c highball -n "__fish_highball_needs_command" -l body-timeout -d 'Longest pause between two pieces of a request body [default: 30s]' -r
complete -c highball -n "__fish_highball_needs_command" -l min-body-rate -d 'Bytes of a request body that have to come in a second, on average, once `body_timeout` has passed [default: 500]' -r
complete -c highball -n "__fish_highball_needs_command" -l idle-timeout -d 'How long a connection without a request is kept [default: 65s] [env: PUMA_PERSISTENT_TIMEOUT]' -r
complete -c highball -n "__fish_highball_needs_command" -l send-timeout -d 'Longest pause in which a client takes nothing of its response [default: 60s]' -r
complete -c highball -n "__fish_highball_needs_command" -l request-timeout -d 'Time for the application to begin its answer [default: 60s; in development none]' -r
complete -c highball -n "__fish_highball_needs_command" -l request-timeouts -d 'Other times than `request_timeout` for some paths (in the file: a table, such as `{ "/reports/*" = "5m" }`, or a list) [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l request-timeout-header -d 'Header field by which the application gets the seconds that are left of its time when a thread begins the request: `12.345` [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l timeout-interrupts -d 'Whether the thread of a request that exceeds its time gets the exception `Highball::RequestTimeout` [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l static-files -d 'Whether files in the application\'s `public` folder, and plain ones of its asset pipeline, are served without the application [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l follow-symlinks -d 'Whether symbolic links in the `public` folder are followed [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l compress -d 'Whether responses and static files are compressed for clients that accept it (zstd, Brotli, gzip) [default: on; in development off]' -r
complete -c highball -n "__fish_highball_needs_command" -l cache -d 'How much memory stored responses of the application may take; 0 stores none [default: 0]' -r
complete -c highball -n "__fish_highball_needs_command" -l sendfile -d 'Folders of files that the application may name in `X-Sendfile` (a path) or `X-Accel-Redirect` (a path, or a URI that begins with the prefix of a folder): Highball sends the file [default: none: these header fields are passed on, for a web server in front]' -r
complete -c highball -n "__fish_highball_needs_command" -l basic-auth -d 'File with users and hashes of their passwords, as `htpasswd -B` writes it: without the right ones (HTTP basic authentication), neither files nor the application answer [default: none]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l basic-auth-realm -d 'What browsers may show when they ask for the password of `basic_auth` [default: Restricted]' -r
complete -c highball -n "__fish_highball_needs_command" -l boot-timeout -d 'Time that the application has to boot [default: 60s; in development 300s]' -r
complete -c highball -n "__fish_highball_needs_command" -l drain-timeout -d 'Time that requests in flight have to end when the server is stopped [default: 30s]' -r
complete -c highball -n "__fish_highball_needs_command" -l drain-grace -d 'Time between the signal to stop and the moment when no new connections are accepted [default: 0s]' -r
complete -c highball -n "__fish_highball_needs_command" -l hijacked-drain-timeout -d 'Time that connections which the application has taken over (WebSockets and the like) have to end when their worker is replaced, or the server is stopped or replaced [default: 5s]' -r
complete -c highball -n "__fish_highball_needs_command" -l probe-path -d 'Path of the request that a new version of the application has to answer during a restart, before clients\' requests go to it: at its first host (localhost, where it has no `hosts`), and below its `prefix` [default: /]' -r
complete -c highball -n "__fish_highball_needs_command" -l warm-up -d 'Path that Highball requests from each new worker in a restart or refork, before clients\' requests go to it [default: only the `probe_path`]' -r
complete -c highball -n "__fish_highball_needs_command" -l probe-timeout -d 'Time that a new version of the application has to answer that request [default: 30s]' -r
complete -c highball -n "__fish_highball_needs_command" -l preload -d 'Whether the application is loaded once, before workers are forked, which then share its memory [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l jit -d 'Whether Ruby compiles what runs often (YJIT, from Ruby 3.1 on) [default: auto]' -r
complete -c highball -n "__fish_highball_needs_command" -l allocator -d 'Which allocator serves the application\'s `malloc` [default: auto]' -r
complete -c highball -n "__fish_highball_needs_command" -l gc -d 'Whether Highball tunes Ruby\'s garbage collector in production: half of the heap is free, if there is memory for it (512 MiB for each worker), and workers collect garbage between requests [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l boot-cache -d 'Whether Highball keeps the Ruby files that the application loads in compiled form, in production, so that the next boot takes less time [default: on]' -r
complete -c highball -n "__fish_highball_needs_command" -l no-new-privs -d 'Whether the application\'s processes, and all that they start, can never get more rights than their user (`no_new_privs` of Linux) [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l refork-after -d 'Re-fork all workers from a warm one after it has served this many requests, so that they share the memory that it has filled by then [default: auto; in development off]' -r
complete -c highball -n "__fish_highball_needs_command" -l rest-mold-after -d 'End the mold, the process from which workers are forked, when the only worker has served for this time [default: 10s; in development none]' -r
complete -c highball -n "__fish_highball_needs_command" -l memory-limit -d 'Memory that one worker may have before another one takes its place: a size, or a share of the memory of the machine or container [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l memory-budget -d 'Memory that all processes of the application may have together before the worker is replaced that has grown the most [default: auto]' -r
complete -c highball -n "__fish_highball_needs_command" -l memory-max -d 'Memory that the kernel lets all processes of the application have together, by a separate cgroup (memory.max); beyond it, the kernel kills one of them [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l cpu-max -d 'CPUs that all processes of the application may use at a time, by a separate cgroup (cpu.max) [default: none]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-boot-failures -d 'Give up after this many workers in a row die before serving [default: 5]' -r
complete -c highball -n "__fish_highball_needs_command" -l max-output -d 'Most output per second of an application of another user [default: 1M]' -r
complete -c highball -n "__fish_highball_needs_command" -l log-format -d 'Form of the log on standard error: `human` or `json` [default: human]' -r
complete -c highball -n "__fish_highball_needs_command" -l access-log -d 'File for a line about each request [default: none; in development -]' -r -F
complete -c highball -n "__fish_highball_needs_command" -l access-log-format -d 'Form of the lines of the access log: `combined`, `json`, or a text with names of fields in braces [default: combined]' -r
complete -c highball -n "__fish_highball_needs_command" -l access-log-sample -d 'Share of the requests that get a line in the access log, chosen at random [default: 100%]' -r
complete -c highball -n "__fish_highball_needs_command" -l request-start -d 'Whether the application gets the time at which a request began to wait for a worker in `X-Request-Start`, if no proxy has sent that field or `X-Queue-Start`: milliseconds since 1970 [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l server-timing -d 'Whether the application\'s responses have a `Server-Timing` field, which browsers show in their developer tools: how many milliseconds the request waited for a worker (`queue`), and how long the application took to begin its answer (`app`) [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -l request-id -d 'Whether each request has an id, in `X-Request-Id`: for the application, in the response, and at the end of its line in the access log [default: off]' -r
complete -c highball -n "__fish_highball_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_needs_command" -s V -l version -d 'Print version'
complete -c highball -n "__fish_highball_needs_command" -a "serve" -d 'Serve the application at PATH, or several (the same as no command)'
complete -c highball -n "__fish_highball_needs_command" -a "doctor" -d 'Boot the app once, without serving it, and report current and likely problems'
complete -c highball -n "__fish_highball_needs_command" -a "config" -d 'Print a configuration for nginx, HAProxy, systemd, Kubernetes and other programs'
complete -c highball -n "__fish_highball_needs_command" -a "init" -d 'Write a configuration file, a Procfile and a systemd unit for the app'
complete -c highball -n "__fish_highball_needs_command" -a "status" -d 'Show how running servers are doing'
complete -c highball -n "__fish_highball_needs_command" -a "top" -d 'Show what a running server does: workers, and the requests that they are at'
complete -c highball -n "__fish_highball_needs_command" -a "restart" -d 'Load new code without dropping requests (rolling restart)'
complete -c highball -n "__fish_highball_needs_command" -a "refork" -d 'Fork the workers again, from one that is warm, so that they share more memory'
complete -c highball -n "__fish_highball_needs_command" -a "upgrade" -d 'Start a new Highball in place of the running one, without dropping requests'
complete -c highball -n "__fish_highball_needs_command" -a "stop" -d 'Let a running server finish its requests and exit'
complete -c highball -n "__fish_highball_needs_command" -a "memory" -d 'Show the memory of running servers and their Ruby heaps'
complete -c highball -n "__fish_highball_needs_command" -a "bench" -d 'Measure an application, or compare ways to deploy it'
complete -c highball -n "__fish_highball_needs_command" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c highball -n "__fish_highball_using_subcommand serve" -s p -l port -d 'TCP port for every address that does not name one [default: 3000] [env: PORT]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -s b -l bind -d 'Address to listen on [default: 0.0.0.0; in development 127.0.0.1] [env: BINDING]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l https -d 'Serves HTTPS in development, with certificates for `localhost` and all names below it, such as `blog.localhost` [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l tls-certificate -d 'File with a TLS certificate (PEM), and behind it those that lead to its authority: what certbot calls `fullchain.pem` [default: none; an address for HTTPS needs one]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l tls-key -d 'File with the private key of the certificate (PEM, not encrypted) [default: the file of the certificate]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l domain -d 'Name for which a certificate is obtained, and renewed, from an authority that speaks ACME, Let\'s Encrypt by default [default: none; no authority is asked]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l domain-on-demand -d 'Name for which a certificate is obtained as with `domain`, but not before a client asks for it [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l domain-ask -d 'Path by which the application says whether a certificate is to be obtained for a name that a client asks for, and that no option names: it is sent `GET PATH?domain=NAME`, and says yes with status 200 [default: none; the application is not asked]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l acme-directory -d 'The authority for the certificates of `domain`: the URL of its ACME directory [default: https://acme-v02.api.letsencrypt.org/directory]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l acme-contact -d 'E-mail address for the authority, which some require [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l acme-authorities -d 'File with the certificate (PEM) that vouches for the server of a private ACME authority [default: the certificate authorities of this machine]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l acme-eab-kid -d 'What the authority calls the account that you have made with it on its site (external account binding), if it requires one [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l acme-eab-key-file -d 'File with the HMAC key of that account, in Base64, as the authority shows it [default: none]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l acme-dns-hook -d 'Program that makes entries in the DNS, by which the authority sees that a `domain` is yours (DNS-01) [default: none; the authority looks at this server]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l state-dir -d 'Folder for what `domain` obtains: accounts, certificates and keys [default: `acme` in systemd\'s `STATE_DIRECTORY`; else `highball` in `XDG_STATE_HOME` or `~/.local/state`]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l redirect-https -d 'Whether clients of HTTP addresses are sent to HTTPS (status 308) [default: `off`; `on` with `domain` and without `bind`]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l hsts -d 'Time for which browsers use HTTPS alone for a host that they have reached over HTTPS (`Strict-Transport-Security`) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l proxy-protocol -d 'Versions of the PROXY protocol in which proxies report the client of each HTTP connection [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l proxy-protocol-from -d 'Proxy that is trusted with `proxy_protocol`: an address or a network [default: loopback]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l trusted-proxies -d 'Proxy in front, by HTTP, that is believed what it reports of each request: an address or a network [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l http2-cleartext -d 'Whether HTTP addresses without TLS also serve HTTP/2 to clients that begin with it (prior knowledge), for example load balancers and service meshes [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -s e -l environment -d 'Environment that the application runs in [default: development] [env: RAILS_ENV] [env: RACK_ENV] [env: APP_ENV]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -s w -l workers -d 'Worker processes [default: auto; in development 1] [env: WEB_CONCURRENCY]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l min-workers -d 'The least workers with `workers = auto`: their number when no requests arrive [default: 1]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-workers -d 'The most workers with `workers = auto` [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -s t -l threads -d 'Threads in each worker [default: 3] [env: RAILS_MAX_THREADS] [env: PUMA_MAX_THREADS] [env: MAX_THREADS]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l early-hints -d 'Whether the application may send early hints (status 103) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -s c -l config -d 'Configuration file, in the place of those in the application [default: config/highball.toml, highball.toml or config/puma.rb in the application, where there is one]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l puma-config -d 'Whether the application\'s `config/puma.rb` counts for what nothing else sets, and its hooks run [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l ruby -d 'Ruby to run the application with [default: the one that the application\'s version file and rbenv, mise or asdf choose, else `ruby` in PATH]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l server-user -d 'User that the server itself runs as where root starts it: the processes that read what clients send [default: `highball` if there is such a user, else the number 65534 (nobody)]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l pidfile -d 'File to write the process id to [default: none is written] [env: PIDFILE]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l admin -d 'Address for health checks (`/livez`, `/readyz`), metrics (`/metrics`) and a dashboard (`/`), apart from the addresses of the applications: an IP address with or without a port (9394), or `unix:/path` [default: there is none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l admin-host -d 'Host name by which the addresses of `admin` are reached, beside IP addresses and `localhost` [default: IP addresses, and `localhost` with its subdomains]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l admin-actions -d 'Whether the dashboard at the addresses of `admin` has buttons: restart, refork, more and fewer workers, replace the worker of a request [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l agent-check -d 'Address at which a load balancer asks how busy this server is, by HAProxy\'s agent check: an IP address with or without a port (9395) [default: there is none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l stuck-after -d 'Time without a free thread, and without an answer to any request, after which an application counts as stuck: `/readyz` then answers 503, so that load balancers send requests elsewhere [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l health-path -d 'Path at which Highball answers a health check of the application by itself, at the addresses for clients, as `/readyz/NAME` does at those of `admin`: 200 or 503 with a word, also while all its threads are busy [default: there is none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l show-diagnosis -d 'Which clients get the details of errors in development [default: link]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l name -d 'Name of the application in the log and in commands [default: the name of its folder; where that is `current`, of the folder around it]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l hosts -d 'Host name that the application is reached by [default: every one; with several applications NAME and NAME.localhost, or with a `prefix` every one]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l prefix -d 'Path that the application is reached below [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l variables -d 'Variable in the environment of the application\'s processes, beside those that Highball was started with [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l pass-variables -d 'Variable of Highball\'s own environment that an application of another user gets as well [default: only those that `docs/users.md` lists]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l user -d 'User that the application runs as, by name or number [default: who started Highball; where that is root, the owner of the application\'s files]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l prestart -d 'Whether the application boots when the server starts, instead of at its first request [default: on; with several applications in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l sleep-after -d 'Stop an idle application after this time [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-target -d 'Longest request target (path and query) [default: 16k]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-head -d 'Largest request head (request line and header fields) [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-fields -d 'Most header fields in a request [default: 128]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-body -d 'Largest request body [default: 1g]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l body-memory -d 'How much of a request body fits beside the request in a worker\'s ring [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l response-buffer -d 'How much of a response is held in memory for a client, before its worker has to wait [default: 256k]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l response-spool -d 'How much of a response goes to a spool file when a slow client would keep its worker waiting for longer than a quarter of a second [default: 1g]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-buffers -d 'How much memory request bodies and the responses for slow clients may hold in all [default: an eighth of the memory of the machine or the container, at least 16 MiB]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-connections -d 'Most open client connections [default: 10000]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-tls-handshakes -d 'TLS handshakes that are computed or wait for a processor at a time [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l http2-streams -d 'Most requests that an HTTP/2 connection may have open at a time [default: 100]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-queue -d 'Most requests that wait for a worker [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l spool-dir -d 'Folder for large request bodies while they arrive [default: /var/tmp where it can be written to, else $TMPDIR, else /tmp]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-spool -d 'How much all spool files together may hold [default: half of the room in `spool_dir`; a quarter, if that lies in memory]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l app-max-spool -d 'How much the spool files of one application may hold [default: all of `max_spool`; with several applications half of it]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-cache -d 'How much memory the stored responses of all applications may take (`cache`) [default: 256m]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l head-timeout -d 'Time for a request head to arrive whole, from its first byte [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l tls-handshake-timeout -d 'Time for the TLS handshake of a connection [default: 10s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l body-timeout -d 'Longest pause between two pieces of a request body [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l min-body-rate -d 'Bytes of a request body that have to come in a second, on average, once `body_timeout` has passed [default: 500]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l idle-timeout -d 'How long a connection without a request is kept [default: 65s] [env: PUMA_PERSISTENT_TIMEOUT]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l send-timeout -d 'Longest pause in which a client takes nothing of its response [default: 60s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l request-timeout -d 'Time for the application to begin its answer [default: 60s; in development none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l request-timeouts -d 'Other times than `request_timeout` for some paths (in the file: a table, such as `{ "/reports/*" = "5m" }`, or a list) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l request-timeout-header -d 'Header field by which the application gets the seconds that are left of its time when a thread begins the request: `12.345` [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l timeout-interrupts -d 'Whether the thread of a request that exceeds its time gets the exception `Highball::RequestTimeout` [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l static-files -d 'Whether files in the application\'s `public` folder, and plain ones of its asset pipeline, are served without the application [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l follow-symlinks -d 'Whether symbolic links in the `public` folder are followed [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l compress -d 'Whether responses and static files are compressed for clients that accept it (zstd, Brotli, gzip) [default: on; in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l cache -d 'How much memory stored responses of the application may take; 0 stores none [default: 0]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l sendfile -d 'Folders of files that the application may name in `X-Sendfile` (a path) or `X-Accel-Redirect` (a path, or a URI that begins with the prefix of a folder): Highball sends the file [default: none: these header fields are passed on, for a web server in front]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l basic-auth -d 'File with users and hashes of their passwords, as `htpasswd -B` writes it: without the right ones (HTTP basic authentication), neither files nor the application answer [default: none]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l basic-auth-realm -d 'What browsers may show when they ask for the password of `basic_auth` [default: Restricted]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l boot-timeout -d 'Time that the application has to boot [default: 60s; in development 300s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l drain-timeout -d 'Time that requests in flight have to end when the server is stopped [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l drain-grace -d 'Time between the signal to stop and the moment when no new connections are accepted [default: 0s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l hijacked-drain-timeout -d 'Time that connections which the application has taken over (WebSockets and the like) have to end when their worker is replaced, or the server is stopped or replaced [default: 5s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l probe-path -d 'Path of the request that a new version of the application has to answer during a restart, before clients\' requests go to it: at its first host (localhost, where it has no `hosts`), and below its `prefix` [default: /]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l warm-up -d 'Path that Highball requests from each new worker in a restart or refork, before clients\' requests go to it [default: only the `probe_path`]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l probe-timeout -d 'Time that a new version of the application has to answer that request [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l preload -d 'Whether the application is loaded once, before workers are forked, which then share its memory [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l jit -d 'Whether Ruby compiles what runs often (YJIT, from Ruby 3.1 on) [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l allocator -d 'Which allocator serves the application\'s `malloc` [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l gc -d 'Whether Highball tunes Ruby\'s garbage collector in production: half of the heap is free, if there is memory for it (512 MiB for each worker), and workers collect garbage between requests [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l boot-cache -d 'Whether Highball keeps the Ruby files that the application loads in compiled form, in production, so that the next boot takes less time [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l no-new-privs -d 'Whether the application\'s processes, and all that they start, can never get more rights than their user (`no_new_privs` of Linux) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l refork-after -d 'Re-fork all workers from a warm one after it has served this many requests, so that they share the memory that it has filled by then [default: auto; in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l rest-mold-after -d 'End the mold, the process from which workers are forked, when the only worker has served for this time [default: 10s; in development none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l memory-limit -d 'Memory that one worker may have before another one takes its place: a size, or a share of the memory of the machine or container [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l memory-budget -d 'Memory that all processes of the application may have together before the worker is replaced that has grown the most [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l memory-max -d 'Memory that the kernel lets all processes of the application have together, by a separate cgroup (memory.max); beyond it, the kernel kills one of them [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l cpu-max -d 'CPUs that all processes of the application may use at a time, by a separate cgroup (cpu.max) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-boot-failures -d 'Give up after this many workers in a row die before serving [default: 5]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l max-output -d 'Most output per second of an application of another user [default: 1M]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l log-format -d 'Form of the log on standard error: `human` or `json` [default: human]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l access-log -d 'File for a line about each request [default: none; in development -]' -r -F
complete -c highball -n "__fish_highball_using_subcommand serve" -l access-log-format -d 'Form of the lines of the access log: `combined`, `json`, or a text with names of fields in braces [default: combined]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l access-log-sample -d 'Share of the requests that get a line in the access log, chosen at random [default: 100%]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l request-start -d 'Whether the application gets the time at which a request began to wait for a worker in `X-Request-Start`, if no proxy has sent that field or `X-Queue-Start`: milliseconds since 1970 [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l server-timing -d 'Whether the application\'s responses have a `Server-Timing` field, which browsers show in their developer tools: how many milliseconds the request waited for a worker (`queue`), and how long the application took to begin its answer (`app`) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -l request-id -d 'Whether each request has an id, in `X-Request-Id`: for the application, in the response, and at the end of its line in the access log [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand doctor" -s p -l port -d 'TCP port for every address that does not name one [default: 3000] [env: PORT]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -s b -l bind -d 'Address to listen on [default: 0.0.0.0; in development 127.0.0.1] [env: BINDING]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l https -d 'Serves HTTPS in development, with certificates for `localhost` and all names below it, such as `blog.localhost` [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l tls-certificate -d 'File with a TLS certificate (PEM), and behind it those that lead to its authority: what certbot calls `fullchain.pem` [default: none; an address for HTTPS needs one]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l tls-key -d 'File with the private key of the certificate (PEM, not encrypted) [default: the file of the certificate]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l domain -d 'Name for which a certificate is obtained, and renewed, from an authority that speaks ACME, Let\'s Encrypt by default [default: none; no authority is asked]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l domain-on-demand -d 'Name for which a certificate is obtained as with `domain`, but not before a client asks for it [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l domain-ask -d 'Path by which the application says whether a certificate is to be obtained for a name that a client asks for, and that no option names: it is sent `GET PATH?domain=NAME`, and says yes with status 200 [default: none; the application is not asked]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l acme-directory -d 'The authority for the certificates of `domain`: the URL of its ACME directory [default: https://acme-v02.api.letsencrypt.org/directory]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l acme-contact -d 'E-mail address for the authority, which some require [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l acme-authorities -d 'File with the certificate (PEM) that vouches for the server of a private ACME authority [default: the certificate authorities of this machine]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l acme-eab-kid -d 'What the authority calls the account that you have made with it on its site (external account binding), if it requires one [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l acme-eab-key-file -d 'File with the HMAC key of that account, in Base64, as the authority shows it [default: none]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l acme-dns-hook -d 'Program that makes entries in the DNS, by which the authority sees that a `domain` is yours (DNS-01) [default: none; the authority looks at this server]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l state-dir -d 'Folder for what `domain` obtains: accounts, certificates and keys [default: `acme` in systemd\'s `STATE_DIRECTORY`; else `highball` in `XDG_STATE_HOME` or `~/.local/state`]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l redirect-https -d 'Whether clients of HTTP addresses are sent to HTTPS (status 308) [default: `off`; `on` with `domain` and without `bind`]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l hsts -d 'Time for which browsers use HTTPS alone for a host that they have reached over HTTPS (`Strict-Transport-Security`) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l proxy-protocol -d 'Versions of the PROXY protocol in which proxies report the client of each HTTP connection [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l proxy-protocol-from -d 'Proxy that is trusted with `proxy_protocol`: an address or a network [default: loopback]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l trusted-proxies -d 'Proxy in front, by HTTP, that is believed what it reports of each request: an address or a network [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l http2-cleartext -d 'Whether HTTP addresses without TLS also serve HTTP/2 to clients that begin with it (prior knowledge), for example load balancers and service meshes [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -s e -l environment -d 'Environment that the application runs in [default: development] [env: RAILS_ENV] [env: RACK_ENV] [env: APP_ENV]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -s w -l workers -d 'Worker processes [default: auto; in development 1] [env: WEB_CONCURRENCY]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l min-workers -d 'The least workers with `workers = auto`: their number when no requests arrive [default: 1]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-workers -d 'The most workers with `workers = auto` [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -s t -l threads -d 'Threads in each worker [default: 3] [env: RAILS_MAX_THREADS] [env: PUMA_MAX_THREADS] [env: MAX_THREADS]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l early-hints -d 'Whether the application may send early hints (status 103) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -s c -l config -d 'Configuration file, in the place of those in the application [default: config/highball.toml, highball.toml or config/puma.rb in the application, where there is one]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l puma-config -d 'Whether the application\'s `config/puma.rb` counts for what nothing else sets, and its hooks run [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l ruby -d 'Ruby to run the application with [default: the one that the application\'s version file and rbenv, mise or asdf choose, else `ruby` in PATH]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l server-user -d 'User that the server itself runs as where root starts it: the processes that read what clients send [default: `highball` if there is such a user, else the number 65534 (nobody)]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l pidfile -d 'File to write the process id to [default: none is written] [env: PIDFILE]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l admin -d 'Address for health checks (`/livez`, `/readyz`), metrics (`/metrics`) and a dashboard (`/`), apart from the addresses of the applications: an IP address with or without a port (9394), or `unix:/path` [default: there is none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l admin-host -d 'Host name by which the addresses of `admin` are reached, beside IP addresses and `localhost` [default: IP addresses, and `localhost` with its subdomains]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l admin-actions -d 'Whether the dashboard at the addresses of `admin` has buttons: restart, refork, more and fewer workers, replace the worker of a request [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l agent-check -d 'Address at which a load balancer asks how busy this server is, by HAProxy\'s agent check: an IP address with or without a port (9395) [default: there is none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l stuck-after -d 'Time without a free thread, and without an answer to any request, after which an application counts as stuck: `/readyz` then answers 503, so that load balancers send requests elsewhere [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l health-path -d 'Path at which Highball answers a health check of the application by itself, at the addresses for clients, as `/readyz/NAME` does at those of `admin`: 200 or 503 with a word, also while all its threads are busy [default: there is none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l show-diagnosis -d 'Which clients get the details of errors in development [default: link]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l name -d 'Name of the application in the log and in commands [default: the name of its folder; where that is `current`, of the folder around it]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l hosts -d 'Host name that the application is reached by [default: every one; with several applications NAME and NAME.localhost, or with a `prefix` every one]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l prefix -d 'Path that the application is reached below [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l variables -d 'Variable in the environment of the application\'s processes, beside those that Highball was started with [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l pass-variables -d 'Variable of Highball\'s own environment that an application of another user gets as well [default: only those that `docs/users.md` lists]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l user -d 'User that the application runs as, by name or number [default: who started Highball; where that is root, the owner of the application\'s files]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l prestart -d 'Whether the application boots when the server starts, instead of at its first request [default: on; with several applications in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l sleep-after -d 'Stop an idle application after this time [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-target -d 'Longest request target (path and query) [default: 16k]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-head -d 'Largest request head (request line and header fields) [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-fields -d 'Most header fields in a request [default: 128]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-body -d 'Largest request body [default: 1g]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l body-memory -d 'How much of a request body fits beside the request in a worker\'s ring [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l response-buffer -d 'How much of a response is held in memory for a client, before its worker has to wait [default: 256k]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l response-spool -d 'How much of a response goes to a spool file when a slow client would keep its worker waiting for longer than a quarter of a second [default: 1g]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-buffers -d 'How much memory request bodies and the responses for slow clients may hold in all [default: an eighth of the memory of the machine or the container, at least 16 MiB]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-connections -d 'Most open client connections [default: 10000]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-tls-handshakes -d 'TLS handshakes that are computed or wait for a processor at a time [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l http2-streams -d 'Most requests that an HTTP/2 connection may have open at a time [default: 100]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-queue -d 'Most requests that wait for a worker [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l spool-dir -d 'Folder for large request bodies while they arrive [default: /var/tmp where it can be written to, else $TMPDIR, else /tmp]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-spool -d 'How much all spool files together may hold [default: half of the room in `spool_dir`; a quarter, if that lies in memory]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l app-max-spool -d 'How much the spool files of one application may hold [default: all of `max_spool`; with several applications half of it]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-cache -d 'How much memory the stored responses of all applications may take (`cache`) [default: 256m]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l head-timeout -d 'Time for a request head to arrive whole, from its first byte [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l tls-handshake-timeout -d 'Time for the TLS handshake of a connection [default: 10s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l body-timeout -d 'Longest pause between two pieces of a request body [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l min-body-rate -d 'Bytes of a request body that have to come in a second, on average, once `body_timeout` has passed [default: 500]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l idle-timeout -d 'How long a connection without a request is kept [default: 65s] [env: PUMA_PERSISTENT_TIMEOUT]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l send-timeout -d 'Longest pause in which a client takes nothing of its response [default: 60s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l request-timeout -d 'Time for the application to begin its answer [default: 60s; in development none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l request-timeouts -d 'Other times than `request_timeout` for some paths (in the file: a table, such as `{ "/reports/*" = "5m" }`, or a list) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l request-timeout-header -d 'Header field by which the application gets the seconds that are left of its time when a thread begins the request: `12.345` [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l timeout-interrupts -d 'Whether the thread of a request that exceeds its time gets the exception `Highball::RequestTimeout` [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l static-files -d 'Whether files in the application\'s `public` folder, and plain ones of its asset pipeline, are served without the application [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l follow-symlinks -d 'Whether symbolic links in the `public` folder are followed [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l compress -d 'Whether responses and static files are compressed for clients that accept it (zstd, Brotli, gzip) [default: on; in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l cache -d 'How much memory stored responses of the application may take; 0 stores none [default: 0]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l sendfile -d 'Folders of files that the application may name in `X-Sendfile` (a path) or `X-Accel-Redirect` (a path, or a URI that begins with the prefix of a folder): Highball sends the file [default: none: these header fields are passed on, for a web server in front]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l basic-auth -d 'File with users and hashes of their passwords, as `htpasswd -B` writes it: without the right ones (HTTP basic authentication), neither files nor the application answer [default: none]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l basic-auth-realm -d 'What browsers may show when they ask for the password of `basic_auth` [default: Restricted]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l boot-timeout -d 'Time that the application has to boot [default: 60s; in development 300s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l drain-timeout -d 'Time that requests in flight have to end when the server is stopped [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l drain-grace -d 'Time between the signal to stop and the moment when no new connections are accepted [default: 0s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l hijacked-drain-timeout -d 'Time that connections which the application has taken over (WebSockets and the like) have to end when their worker is replaced, or the server is stopped or replaced [default: 5s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l probe-path -d 'Path of the request that a new version of the application has to answer during a restart, before clients\' requests go to it: at its first host (localhost, where it has no `hosts`), and below its `prefix` [default: /]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l warm-up -d 'Path that Highball requests from each new worker in a restart or refork, before clients\' requests go to it [default: only the `probe_path`]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l probe-timeout -d 'Time that a new version of the application has to answer that request [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l preload -d 'Whether the application is loaded once, before workers are forked, which then share its memory [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l jit -d 'Whether Ruby compiles what runs often (YJIT, from Ruby 3.1 on) [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l allocator -d 'Which allocator serves the application\'s `malloc` [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l gc -d 'Whether Highball tunes Ruby\'s garbage collector in production: half of the heap is free, if there is memory for it (512 MiB for each worker), and workers collect garbage between requests [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l boot-cache -d 'Whether Highball keeps the Ruby files that the application loads in compiled form, in production, so that the next boot takes less time [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l no-new-privs -d 'Whether the application\'s processes, and all that they start, can never get more rights than their user (`no_new_privs` of Linux) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l refork-after -d 'Re-fork all workers from a warm one after it has served this many requests, so that they share the memory that it has filled by then [default: auto; in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l rest-mold-after -d 'End the mold, the process from which workers are forked, when the only worker has served for this time [default: 10s; in development none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l memory-limit -d 'Memory that one worker may have before another one takes its place: a size, or a share of the memory of the machine or container [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l memory-budget -d 'Memory that all processes of the application may have together before the worker is replaced that has grown the most [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l memory-max -d 'Memory that the kernel lets all processes of the application have together, by a separate cgroup (memory.max); beyond it, the kernel kills one of them [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l cpu-max -d 'CPUs that all processes of the application may use at a time, by a separate cgroup (cpu.max) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-boot-failures -d 'Give up after this many workers in a row die before serving [default: 5]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l max-output -d 'Most output per second of an application of another user [default: 1M]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l log-format -d 'Form of the log on standard error: `human` or `json` [default: human]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l access-log -d 'File for a line about each request [default: none; in development -]' -r -F
complete -c highball -n "__fish_highball_using_subcommand doctor" -l access-log-format -d 'Form of the lines of the access log: `combined`, `json`, or a text with names of fields in braces [default: combined]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l access-log-sample -d 'Share of the requests that get a line in the access log, chosen at random [default: 100%]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l request-start -d 'Whether the application gets the time at which a request began to wait for a worker in `X-Request-Start`, if no proxy has sent that field or `X-Queue-Start`: milliseconds since 1970 [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l server-timing -d 'Whether the application\'s responses have a `Server-Timing` field, which browsers show in their developer tools: how many milliseconds the request waited for a worker (`queue`), and how long the application took to begin its answer (`app`) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l request-id -d 'Whether each request has an id, in `X-Request-Id`: for the application, in the response, and at the end of its line in the access log [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand doctor" -l json -d 'As JSON, for programs'
complete -c highball -n "__fish_highball_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand config" -s p -l port -d 'TCP port for every address that does not name one [default: 3000] [env: PORT]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -s b -l bind -d 'Address to listen on [default: 0.0.0.0; in development 127.0.0.1] [env: BINDING]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l https -d 'Serves HTTPS in development, with certificates for `localhost` and all names below it, such as `blog.localhost` [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l tls-certificate -d 'File with a TLS certificate (PEM), and behind it those that lead to its authority: what certbot calls `fullchain.pem` [default: none; an address for HTTPS needs one]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l tls-key -d 'File with the private key of the certificate (PEM, not encrypted) [default: the file of the certificate]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l domain -d 'Name for which a certificate is obtained, and renewed, from an authority that speaks ACME, Let\'s Encrypt by default [default: none; no authority is asked]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l domain-on-demand -d 'Name for which a certificate is obtained as with `domain`, but not before a client asks for it [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l domain-ask -d 'Path by which the application says whether a certificate is to be obtained for a name that a client asks for, and that no option names: it is sent `GET PATH?domain=NAME`, and says yes with status 200 [default: none; the application is not asked]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l acme-directory -d 'The authority for the certificates of `domain`: the URL of its ACME directory [default: https://acme-v02.api.letsencrypt.org/directory]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l acme-contact -d 'E-mail address for the authority, which some require [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l acme-authorities -d 'File with the certificate (PEM) that vouches for the server of a private ACME authority [default: the certificate authorities of this machine]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l acme-eab-kid -d 'What the authority calls the account that you have made with it on its site (external account binding), if it requires one [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l acme-eab-key-file -d 'File with the HMAC key of that account, in Base64, as the authority shows it [default: none]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l acme-dns-hook -d 'Program that makes entries in the DNS, by which the authority sees that a `domain` is yours (DNS-01) [default: none; the authority looks at this server]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l state-dir -d 'Folder for what `domain` obtains: accounts, certificates and keys [default: `acme` in systemd\'s `STATE_DIRECTORY`; else `highball` in `XDG_STATE_HOME` or `~/.local/state`]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l redirect-https -d 'Whether clients of HTTP addresses are sent to HTTPS (status 308) [default: `off`; `on` with `domain` and without `bind`]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l hsts -d 'Time for which browsers use HTTPS alone for a host that they have reached over HTTPS (`Strict-Transport-Security`) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l proxy-protocol -d 'Versions of the PROXY protocol in which proxies report the client of each HTTP connection [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l proxy-protocol-from -d 'Proxy that is trusted with `proxy_protocol`: an address or a network [default: loopback]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l trusted-proxies -d 'Proxy in front, by HTTP, that is believed what it reports of each request: an address or a network [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l http2-cleartext -d 'Whether HTTP addresses without TLS also serve HTTP/2 to clients that begin with it (prior knowledge), for example load balancers and service meshes [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -s e -l environment -d 'Environment that the application runs in [default: development] [env: RAILS_ENV] [env: RACK_ENV] [env: APP_ENV]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -s w -l workers -d 'Worker processes [default: auto; in development 1] [env: WEB_CONCURRENCY]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l min-workers -d 'The least workers with `workers = auto`: their number when no requests arrive [default: 1]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-workers -d 'The most workers with `workers = auto` [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -s t -l threads -d 'Threads in each worker [default: 3] [env: RAILS_MAX_THREADS] [env: PUMA_MAX_THREADS] [env: MAX_THREADS]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l early-hints -d 'Whether the application may send early hints (status 103) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -s c -l config -d 'Configuration file, in the place of those in the application [default: config/highball.toml, highball.toml or config/puma.rb in the application, where there is one]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l puma-config -d 'Whether the application\'s `config/puma.rb` counts for what nothing else sets, and its hooks run [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l ruby -d 'Ruby to run the application with [default: the one that the application\'s version file and rbenv, mise or asdf choose, else `ruby` in PATH]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l server-user -d 'User that the server itself runs as where root starts it: the processes that read what clients send [default: `highball` if there is such a user, else the number 65534 (nobody)]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l pidfile -d 'File to write the process id to [default: none is written] [env: PIDFILE]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l admin -d 'Address for health checks (`/livez`, `/readyz`), metrics (`/metrics`) and a dashboard (`/`), apart from the addresses of the applications: an IP address with or without a port (9394), or `unix:/path` [default: there is none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l admin-host -d 'Host name by which the addresses of `admin` are reached, beside IP addresses and `localhost` [default: IP addresses, and `localhost` with its subdomains]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l admin-actions -d 'Whether the dashboard at the addresses of `admin` has buttons: restart, refork, more and fewer workers, replace the worker of a request [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l agent-check -d 'Address at which a load balancer asks how busy this server is, by HAProxy\'s agent check: an IP address with or without a port (9395) [default: there is none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l stuck-after -d 'Time without a free thread, and without an answer to any request, after which an application counts as stuck: `/readyz` then answers 503, so that load balancers send requests elsewhere [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l health-path -d 'Path at which Highball answers a health check of the application by itself, at the addresses for clients, as `/readyz/NAME` does at those of `admin`: 200 or 503 with a word, also while all its threads are busy [default: there is none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l show-diagnosis -d 'Which clients get the details of errors in development [default: link]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l name -d 'Name of the application in the log and in commands [default: the name of its folder; where that is `current`, of the folder around it]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l hosts -d 'Host name that the application is reached by [default: every one; with several applications NAME and NAME.localhost, or with a `prefix` every one]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l prefix -d 'Path that the application is reached below [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l variables -d 'Variable in the environment of the application\'s processes, beside those that Highball was started with [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l pass-variables -d 'Variable of Highball\'s own environment that an application of another user gets as well [default: only those that `docs/users.md` lists]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l user -d 'User that the application runs as, by name or number [default: who started Highball; where that is root, the owner of the application\'s files]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l prestart -d 'Whether the application boots when the server starts, instead of at its first request [default: on; with several applications in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l sleep-after -d 'Stop an idle application after this time [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-target -d 'Longest request target (path and query) [default: 16k]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-head -d 'Largest request head (request line and header fields) [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-fields -d 'Most header fields in a request [default: 128]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-body -d 'Largest request body [default: 1g]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l body-memory -d 'How much of a request body fits beside the request in a worker\'s ring [default: 64k]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l response-buffer -d 'How much of a response is held in memory for a client, before its worker has to wait [default: 256k]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l response-spool -d 'How much of a response goes to a spool file when a slow client would keep its worker waiting for longer than a quarter of a second [default: 1g]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-buffers -d 'How much memory request bodies and the responses for slow clients may hold in all [default: an eighth of the memory of the machine or the container, at least 16 MiB]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-connections -d 'Most open client connections [default: 10000]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-tls-handshakes -d 'TLS handshakes that are computed or wait for a processor at a time [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l http2-streams -d 'Most requests that an HTTP/2 connection may have open at a time [default: 100]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-queue -d 'Most requests that wait for a worker [default: 1000]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l spool-dir -d 'Folder for large request bodies while they arrive [default: /var/tmp where it can be written to, else $TMPDIR, else /tmp]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l max-spool -d 'How much all spool files together may hold [default: half of the room in `spool_dir`; a quarter, if that lies in memory]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l app-max-spool -d 'How much the spool files of one application may hold [default: all of `max_spool`; with several applications half of it]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-cache -d 'How much memory the stored responses of all applications may take (`cache`) [default: 256m]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l head-timeout -d 'Time for a request head to arrive whole, from its first byte [default: 15s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l tls-handshake-timeout -d 'Time for the TLS handshake of a connection [default: 10s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l body-timeout -d 'Longest pause between two pieces of a request body [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l min-body-rate -d 'Bytes of a request body that have to come in a second, on average, once `body_timeout` has passed [default: 500]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l idle-timeout -d 'How long a connection without a request is kept [default: 65s] [env: PUMA_PERSISTENT_TIMEOUT]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l send-timeout -d 'Longest pause in which a client takes nothing of its response [default: 60s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l request-timeout -d 'Time for the application to begin its answer [default: 60s; in development none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l request-timeouts -d 'Other times than `request_timeout` for some paths (in the file: a table, such as `{ "/reports/*" = "5m" }`, or a list) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l request-timeout-header -d 'Header field by which the application gets the seconds that are left of its time when a thread begins the request: `12.345` [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l timeout-interrupts -d 'Whether the thread of a request that exceeds its time gets the exception `Highball::RequestTimeout` [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l static-files -d 'Whether files in the application\'s `public` folder, and plain ones of its asset pipeline, are served without the application [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l follow-symlinks -d 'Whether symbolic links in the `public` folder are followed [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l compress -d 'Whether responses and static files are compressed for clients that accept it (zstd, Brotli, gzip) [default: on; in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l cache -d 'How much memory stored responses of the application may take; 0 stores none [default: 0]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l sendfile -d 'Folders of files that the application may name in `X-Sendfile` (a path) or `X-Accel-Redirect` (a path, or a URI that begins with the prefix of a folder): Highball sends the file [default: none: these header fields are passed on, for a web server in front]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l basic-auth -d 'File with users and hashes of their passwords, as `htpasswd -B` writes it: without the right ones (HTTP basic authentication), neither files nor the application answer [default: none]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l basic-auth-realm -d 'What browsers may show when they ask for the password of `basic_auth` [default: Restricted]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l boot-timeout -d 'Time that the application has to boot [default: 60s; in development 300s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l drain-timeout -d 'Time that requests in flight have to end when the server is stopped [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l drain-grace -d 'Time between the signal to stop and the moment when no new connections are accepted [default: 0s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l hijacked-drain-timeout -d 'Time that connections which the application has taken over (WebSockets and the like) have to end when their worker is replaced, or the server is stopped or replaced [default: 5s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l probe-path -d 'Path of the request that a new version of the application has to answer during a restart, before clients\' requests go to it: at its first host (localhost, where it has no `hosts`), and below its `prefix` [default: /]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l warm-up -d 'Path that Highball requests from each new worker in a restart or refork, before clients\' requests go to it [default: only the `probe_path`]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l probe-timeout -d 'Time that a new version of the application has to answer that request [default: 30s]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l preload -d 'Whether the application is loaded once, before workers are forked, which then share its memory [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l jit -d 'Whether Ruby compiles what runs often (YJIT, from Ruby 3.1 on) [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l allocator -d 'Which allocator serves the application\'s `malloc` [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l gc -d 'Whether Highball tunes Ruby\'s garbage collector in production: half of the heap is free, if there is memory for it (512 MiB for each worker), and workers collect garbage between requests [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l boot-cache -d 'Whether Highball keeps the Ruby files that the application loads in compiled form, in production, so that the next boot takes less time [default: on]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l no-new-privs -d 'Whether the application\'s processes, and all that they start, can never get more rights than their user (`no_new_privs` of Linux) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l refork-after -d 'Re-fork all workers from a warm one after it has served this many requests, so that they share the memory that it has filled by then [default: auto; in development off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l rest-mold-after -d 'End the mold, the process from which workers are forked, when the only worker has served for this time [default: 10s; in development none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l memory-limit -d 'Memory that one worker may have before another one takes its place: a size, or a share of the memory of the machine or container [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l memory-budget -d 'Memory that all processes of the application may have together before the worker is replaced that has grown the most [default: auto]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l memory-max -d 'Memory that the kernel lets all processes of the application have together, by a separate cgroup (memory.max); beyond it, the kernel kills one of them [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l cpu-max -d 'CPUs that all processes of the application may use at a time, by a separate cgroup (cpu.max) [default: none]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-boot-failures -d 'Give up after this many workers in a row die before serving [default: 5]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l max-output -d 'Most output per second of an application of another user [default: 1M]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l log-format -d 'Form of the log on standard error: `human` or `json` [default: human]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l access-log -d 'File for a line about each request [default: none; in development -]' -r -F
complete -c highball -n "__fish_highball_using_subcommand config" -l access-log-format -d 'Form of the lines of the access log: `combined`, `json`, or a text with names of fields in braces [default: combined]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l access-log-sample -d 'Share of the requests that get a line in the access log, chosen at random [default: 100%]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l request-start -d 'Whether the application gets the time at which a request began to wait for a worker in `X-Request-Start`, if no proxy has sent that field or `X-Queue-Start`: milliseconds since 1970 [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l server-timing -d 'Whether the application\'s responses have a `Server-Timing` field, which browsers show in their developer tools: how many milliseconds the request waited for a worker (`queue`), and how long the application took to begin its answer (`app`) [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l request-id -d 'Whether each request has an id, in `X-Request-Id`: for the application, in the response, and at the end of its line in the access log [default: off]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l via -d 'Protocol by which the program reaches Highball [default: http, if Highball listens for it]' -r -f -a "http\t''
fastcgi\t''"
complete -c highball -n "__fish_highball_using_subcommand config" -l host -d 'Host name that visitors ask for [default: the folder\'s name and `.localhost`]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l machines -d 'Host names or IP addresses of the machines that serve it, with commas between them: for haproxy and kamal' -r
complete -c highball -n "__fish_highball_using_subcommand config" -l memory -d 'Memory that the server takes on each machine, as `highball memory` reports it: for kubernetes, kamal and nomad [default: an estimate]' -r
complete -c highball -n "__fish_highball_using_subcommand config" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand init" -l dry-run -d 'Say what would be written, and write nothing'
complete -c highball -n "__fish_highball_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand status" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand status" -l json -d 'As JSON, for programs'
complete -c highball -n "__fish_highball_using_subcommand status" -l check -d 'Exit with 1 unless all applications serve: for health checks'
complete -c highball -n "__fish_highball_using_subcommand status" -s h -l help -d 'Print help'
complete -c highball -n "__fish_highball_using_subcommand top" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand top" -l once -d 'Print one picture, for scripts and logs'
complete -c highball -n "__fish_highball_using_subcommand top" -l backtraces -d 'Print one picture, with the backtraces of all requests'
complete -c highball -n "__fish_highball_using_subcommand top" -l json -d 'Print one picture as JSON, for programs'
complete -c highball -n "__fish_highball_using_subcommand top" -l token -d 'Print the token by which the dashboard takes orders (option `admin_actions`)'
complete -c highball -n "__fish_highball_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand restart" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand restart" -s h -l help -d 'Print help'
complete -c highball -n "__fish_highball_using_subcommand refork" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand refork" -s h -l help -d 'Print help'
complete -c highball -n "__fish_highball_using_subcommand upgrade" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand upgrade" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand stop" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand stop" -s h -l help -d 'Print help'
complete -c highball -n "__fish_highball_using_subcommand memory" -s p -l port -d 'The server that listens on this port' -r
complete -c highball -n "__fish_highball_using_subcommand memory" -l gc -d 'After a full garbage collection in every worker, for which its requests wait'
complete -c highball -n "__fish_highball_using_subcommand memory" -l json -d 'As JSON, for programs'
complete -c highball -n "__fish_highball_using_subcommand memory" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "serve" -d 'Serve the application at PATH, or several (the same as no command)'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "doctor" -d 'Boot the app once, without serving it, and report current and likely problems'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "config" -d 'Print a configuration for nginx, HAProxy, systemd, Kubernetes and other programs'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "init" -d 'Write a configuration file, a Procfile and a systemd unit for the app'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "status" -d 'Show how running servers are doing'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "top" -d 'Show what a running server does: workers, and the requests that they are at'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "restart" -d 'Load new code without dropping requests (rolling restart)'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "refork" -d 'Fork the workers again, from one that is warm, so that they share more memory'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "upgrade" -d 'Start a new Highball in place of the running one, without dropping requests'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "stop" -d 'Let a running server finish its requests and exit'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "memory" -d 'Show the memory of running servers and their Ruby heaps'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "bench" -d 'Measure an application, or compare ways to deploy it'
complete -c highball -n "__fish_highball_using_subcommand help; and not __fish_seen_subcommand_from serve doctor config init status top restart refork upgrade stop memory bench help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
