_highball() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="highball"
                ;;
            highball,bench)
                cmd="highball__subcmd__bench"
                ;;
            highball,config)
                cmd="highball__subcmd__config"
                ;;
            highball,doctor)
                cmd="highball__subcmd__doctor"
                ;;
            highball,help)
                cmd="highball__subcmd__help"
                ;;
            highball,init)
                cmd="highball__subcmd__init"
                ;;
            highball,maintenance)
                cmd="highball__subcmd__maintenance"
                ;;
            highball,memory)
                cmd="highball__subcmd__memory"
                ;;
            highball,profile)
                cmd="highball__subcmd__profile"
                ;;
            highball,refork)
                cmd="highball__subcmd__refork"
                ;;
            highball,restart)
                cmd="highball__subcmd__restart"
                ;;
            highball,rollout)
                cmd="highball__subcmd__rollout"
                ;;
            highball,serve)
                cmd="highball__subcmd__serve"
                ;;
            highball,status)
                cmd="highball__subcmd__status"
                ;;
            highball,stop)
                cmd="highball__subcmd__stop"
                ;;
            highball,top)
                cmd="highball__subcmd__top"
                ;;
            highball,upgrade)
                cmd="highball__subcmd__upgrade"
                ;;
            highball__subcmd__help,bench)
                cmd="highball__subcmd__help__subcmd__bench"
                ;;
            highball__subcmd__help,config)
                cmd="highball__subcmd__help__subcmd__config"
                ;;
            highball__subcmd__help,doctor)
                cmd="highball__subcmd__help__subcmd__doctor"
                ;;
            highball__subcmd__help,help)
                cmd="highball__subcmd__help__subcmd__help"
                ;;
            highball__subcmd__help,init)
                cmd="highball__subcmd__help__subcmd__init"
                ;;
            highball__subcmd__help,maintenance)
                cmd="highball__subcmd__help__subcmd__maintenance"
                ;;
            highball__subcmd__help,memory)
                cmd="highball__subcmd__help__subcmd__memory"
                ;;
            highball__subcmd__help,profile)
                cmd="highball__subcmd__help__subcmd__profile"
                ;;
            highball__subcmd__help,refork)
                cmd="highball__subcmd__help__subcmd__refork"
                ;;
            highball__subcmd__help,restart)
                cmd="highball__subcmd__help__subcmd__restart"
                ;;
            highball__subcmd__help,rollout)
                cmd="highball__subcmd__help__subcmd__rollout"
                ;;
            highball__subcmd__help,serve)
                cmd="highball__subcmd__help__subcmd__serve"
                ;;
            highball__subcmd__help,status)
                cmd="highball__subcmd__help__subcmd__status"
                ;;
            highball__subcmd__help,stop)
                cmd="highball__subcmd__help__subcmd__stop"
                ;;
            highball__subcmd__help,top)
                cmd="highball__subcmd__help__subcmd__top"
                ;;
            highball__subcmd__help,upgrade)
                cmd="highball__subcmd__help__subcmd__upgrade"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        highball)
            opts="-p -b -e -c -w -t -h -V --port --bind --proxy-protocol --proxy-protocol-from --trusted-proxies --canonical-host --redirects --response-headers --http2-cleartext --https --tls-certificate --tls-key --tls-client-ca --tls-client-auth --domain --domain-on-demand --domain-ask --acme-directory --acme-contact --acme-authorities --acme-eab-kid --acme-eab-key-file --acme-dns-hook --state-dir --redirect-https --hsts --environment --early-hints --config --puma-config --ruby --preload --jit --allocator --gc --boot-cache --with --procfile --workers --min-workers --max-workers --threads --refork-after --rest-mold-after --memory-limit --memory-budget --memory-max --cpu-max --pidfile --boot-timeout --drain-timeout --drain-grace --hijacked-drain-timeout --probe-path --warm-up --probe-timeout --max-boot-failures --head-timeout --tls-handshake-timeout --body-timeout --min-body-rate --idle-timeout --send-timeout --stream-idle-timeout --request-timeout --request-timeouts --request-timeout-header --timeout-interrupts --slow-request --max-target --max-head --max-fields --max-body --body-memory --response-buffer --response-spool --max-buffers --max-connections --max-tls-handshakes --http2-streams --max-queue --max-streams --affinity --fibers --max-fibers --fiber-scheduler --spool-dir --max-spool --app-max-spool --max-cache --static-files --follow-symlinks --compress --cache --sendfile --max-held --max-held-streams --max-message --hub-history --hub-history-time --hub-heartbeat --hold-cable --cable --max-cable-clients --max-cable-message --max-cable-streams --max-hub --admin --admin-host --admin-actions --agent-check --stuck-after --maintenance-file --health-path --max-output --log-format --access-log --access-log-format --access-log-sample --request-start --server-timing --request-id --otlp-endpoint --server-user --show-diagnosis --user --rate-limit --rate-limit-exempt --basic-auth --basic-auth-realm --no-new-privs --name --hosts --prefix --variables --pass-variables --prestart --sleep-after --help --version serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -b)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --proxy-protocol)
                    COMPREPLY=($(compgen -W "off v1 v2 v1,v2" -- "${cur}"))
                    return 0
                    ;;
                --proxy-protocol-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trusted-proxies)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --canonical-host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --redirects)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --response-headers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --http2-cleartext)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --https)
                    COMPREPLY=($(compgen -W "on off" -- "${cur}"))
                    return 0
                    ;;
                --tls-certificate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-client-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-client-auth)
                    COMPREPLY=($(compgen -W "required optional off" -- "${cur}"))
                    return 0
                    ;;
                --domain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --domain-on-demand)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --domain-ask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-directory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-contact)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-authorities)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-eab-kid)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-eab-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-dns-hook)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --redirect-https)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hsts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --environment)
                    COMPREPLY=($(compgen -W "development production staging test" -- "${cur}"))
                    return 0
                    ;;
                -e)
                    COMPREPLY=($(compgen -W "development production staging test" -- "${cur}"))
                    return 0
                    ;;
                --early-hints)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -c)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --puma-config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ruby)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --preload)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --jit)
                    COMPREPLY=($(compgen -W "auto on off" -- "${cur}"))
                    return 0
                    ;;
                --allocator)
                    COMPREPLY=($(compgen -W "auto jemalloc system" -- "${cur}"))
                    return 0
                    ;;
                --gc)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --boot-cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --with)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --procfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -w)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --refork-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rest-mold-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory-budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pidfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --boot-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain-grace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hijacked-drain-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --probe-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --warm-up)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --probe-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-boot-failures)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --head-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-handshake-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --body-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-body-rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --idle-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --send-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stream-idle-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeouts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeout-header)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout-interrupts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slow-request)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-target)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-head)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-fields)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-body)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --body-memory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --response-buffer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --response-spool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-buffers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-connections)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-tls-handshakes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --http2-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-queue)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --affinity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fibers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-fibers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fiber-scheduler)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --spool-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-spool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --app-max-spool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --static-files)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --follow-symlinks)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --compress)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sendfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-held)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-held-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-message)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hub-history)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hub-history-time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hub-heartbeat)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hold-cable)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cable)
                    COMPREPLY=($(compgen -W "auto off" -- "${cur}"))
                    return 0
                    ;;
                --max-cable-clients)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cable-message)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cable-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-hub)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-actions)
                    COMPREPLY=($(compgen -W "on off" -- "${cur}"))
                    return 0
                    ;;
                --agent-check)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stuck-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --maintenance-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -W "human json" -- "${cur}"))
                    return 0
                    ;;
                --access-log)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access-log-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access-log-sample)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-start)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-timing)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-id)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --otlp-endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --show-diagnosis)
                    COMPREPLY=($(compgen -W "link local off" -- "${cur}"))
                    return 0
                    ;;
                --user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate-limit-exempt)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --basic-auth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --basic-auth-realm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --no-new-privs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hosts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --variables)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pass-variables)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prestart)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sleep-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__bench)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__config)
            opts="-p -b -e -c -w -t -h --port --bind --proxy-protocol --proxy-protocol-from --trusted-proxies --canonical-host --redirects --response-headers --http2-cleartext --https --tls-certificate --tls-key --tls-client-ca --tls-client-auth --domain --domain-on-demand --domain-ask --acme-directory --acme-contact --acme-authorities --acme-eab-kid --acme-eab-key-file --acme-dns-hook --state-dir --redirect-https --hsts --environment --early-hints --config --puma-config --ruby --preload --jit --allocator --gc --boot-cache --with --procfile --workers --min-workers --max-workers --threads --refork-after --rest-mold-after --memory-limit --memory-budget --memory-max --cpu-max --pidfile --boot-timeout --drain-timeout --drain-grace --hijacked-drain-timeout --probe-path --warm-up --probe-timeout --max-boot-failures --head-timeout --tls-handshake-timeout --body-timeout --min-body-rate --idle-timeout --send-timeout --stream-idle-timeout --request-timeout --request-timeouts --request-timeout-header --timeout-interrupts --slow-request --max-target --max-head --max-fields --max-body --body-memory --response-buffer --response-spool --max-buffers --max-connections --max-tls-handshakes --http2-streams --max-queue --max-streams --affinity --fibers --max-fibers --fiber-scheduler --spool-dir --max-spool --app-max-spool --max-cache --static-files --follow-symlinks --compress --cache --sendfile --max-held --max-held-streams --max-message --hub-history --hub-history-time --hub-heartbeat --hold-cable --cable --max-cable-clients --max-cable-message --max-cable-streams --max-hub --admin --admin-host --admin-actions --agent-check --stuck-after --maintenance-file --health-path --max-output --log-format --access-log --access-log-format --access-log-sample --request-start --server-timing --request-id --otlp-endpoint --server-user --show-diagnosis --user --rate-limit --rate-limit-exempt --basic-auth --basic-auth-realm --no-new-privs --name --hosts --prefix --variables --pass-variables --prestart --sleep-after --via --host --machines --memory --help nginx apache caddy haproxy lighttpd systemd kubernetes kamal nomad"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -b)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --proxy-protocol)
                    COMPREPLY=($(compgen -W "off v1 v2 v1,v2" -- "${cur}"))
                    return 0
                    ;;
                --proxy-protocol-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trusted-proxies)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --canonical-host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --redirects)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --response-headers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --http2-cleartext)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --https)
                    COMPREPLY=($(compgen -W "on off" -- "${cur}"))
                    return 0
                    ;;
                --tls-certificate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-client-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-client-auth)
                    COMPREPLY=($(compgen -W "required optional off" -- "${cur}"))
                    return 0
                    ;;
                --domain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --domain-on-demand)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --domain-ask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-directory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-contact)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-authorities)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-eab-kid)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-eab-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-dns-hook)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --redirect-https)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hsts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --environment)
                    COMPREPLY=($(compgen -W "development production staging test" -- "${cur}"))
                    return 0
                    ;;
                -e)
                    COMPREPLY=($(compgen -W "development production staging test" -- "${cur}"))
                    return 0
                    ;;
                --early-hints)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -c)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --puma-config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ruby)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --preload)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --jit)
                    COMPREPLY=($(compgen -W "auto on off" -- "${cur}"))
                    return 0
                    ;;
                --allocator)
                    COMPREPLY=($(compgen -W "auto jemalloc system" -- "${cur}"))
                    return 0
                    ;;
                --gc)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --boot-cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --with)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --procfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -w)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --refork-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rest-mold-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory-budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pidfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --boot-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain-grace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hijacked-drain-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --probe-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --warm-up)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --probe-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-boot-failures)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --head-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-handshake-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --body-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-body-rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --idle-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --send-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stream-idle-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeouts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeout-header)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout-interrupts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slow-request)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-target)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-head)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-fields)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-body)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --body-memory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --response-buffer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --response-spool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-buffers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-connections)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-tls-handshakes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --http2-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-queue)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --affinity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fibers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-fibers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fiber-scheduler)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --spool-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-spool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --app-max-spool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --static-files)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --follow-symlinks)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --compress)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sendfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-held)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-held-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-message)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hub-history)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hub-history-time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hub-heartbeat)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hold-cable)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cable)
                    COMPREPLY=($(compgen -W "auto off" -- "${cur}"))
                    return 0
                    ;;
                --max-cable-clients)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cable-message)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cable-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-hub)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-actions)
                    COMPREPLY=($(compgen -W "on off" -- "${cur}"))
                    return 0
                    ;;
                --agent-check)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stuck-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --maintenance-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -W "human json" -- "${cur}"))
                    return 0
                    ;;
                --access-log)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access-log-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access-log-sample)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-start)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-timing)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-id)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --otlp-endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --show-diagnosis)
                    COMPREPLY=($(compgen -W "link local off" -- "${cur}"))
                    return 0
                    ;;
                --user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate-limit-exempt)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --basic-auth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --basic-auth-realm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --no-new-privs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hosts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --variables)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pass-variables)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prestart)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sleep-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --via)
                    COMPREPLY=($(compgen -W "http fastcgi" -- "${cur}"))
                    return 0
                    ;;
                --host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --machines)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__doctor)
            opts="-p -b -e -c -w -t -h --port --bind --proxy-protocol --proxy-protocol-from --trusted-proxies --canonical-host --redirects --response-headers --http2-cleartext --https --tls-certificate --tls-key --tls-client-ca --tls-client-auth --domain --domain-on-demand --domain-ask --acme-directory --acme-contact --acme-authorities --acme-eab-kid --acme-eab-key-file --acme-dns-hook --state-dir --redirect-https --hsts --environment --early-hints --config --puma-config --ruby --preload --jit --allocator --gc --boot-cache --with --procfile --workers --min-workers --max-workers --threads --refork-after --rest-mold-after --memory-limit --memory-budget --memory-max --cpu-max --pidfile --boot-timeout --drain-timeout --drain-grace --hijacked-drain-timeout --probe-path --warm-up --probe-timeout --max-boot-failures --head-timeout --tls-handshake-timeout --body-timeout --min-body-rate --idle-timeout --send-timeout --stream-idle-timeout --request-timeout --request-timeouts --request-timeout-header --timeout-interrupts --slow-request --max-target --max-head --max-fields --max-body --body-memory --response-buffer --response-spool --max-buffers --max-connections --max-tls-handshakes --http2-streams --max-queue --max-streams --affinity --fibers --max-fibers --fiber-scheduler --spool-dir --max-spool --app-max-spool --max-cache --static-files --follow-symlinks --compress --cache --sendfile --max-held --max-held-streams --max-message --hub-history --hub-history-time --hub-heartbeat --hold-cable --cable --max-cable-clients --max-cable-message --max-cable-streams --max-hub --admin --admin-host --admin-actions --agent-check --stuck-after --maintenance-file --health-path --max-output --log-format --access-log --access-log-format --access-log-sample --request-start --server-timing --request-id --otlp-endpoint --server-user --show-diagnosis --user --rate-limit --rate-limit-exempt --basic-auth --basic-auth-realm --no-new-privs --name --hosts --prefix --variables --pass-variables --prestart --sleep-after --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -b)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --proxy-protocol)
                    COMPREPLY=($(compgen -W "off v1 v2 v1,v2" -- "${cur}"))
                    return 0
                    ;;
                --proxy-protocol-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trusted-proxies)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --canonical-host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --redirects)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --response-headers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --http2-cleartext)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --https)
                    COMPREPLY=($(compgen -W "on off" -- "${cur}"))
                    return 0
                    ;;
                --tls-certificate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-client-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-client-auth)
                    COMPREPLY=($(compgen -W "required optional off" -- "${cur}"))
                    return 0
                    ;;
                --domain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --domain-on-demand)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --domain-ask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-directory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-contact)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-authorities)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-eab-kid)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-eab-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-dns-hook)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --redirect-https)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hsts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --environment)
                    COMPREPLY=($(compgen -W "development production staging test" -- "${cur}"))
                    return 0
                    ;;
                -e)
                    COMPREPLY=($(compgen -W "development production staging test" -- "${cur}"))
                    return 0
                    ;;
                --early-hints)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -c)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --puma-config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ruby)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --preload)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --jit)
                    COMPREPLY=($(compgen -W "auto on off" -- "${cur}"))
                    return 0
                    ;;
                --allocator)
                    COMPREPLY=($(compgen -W "auto jemalloc system" -- "${cur}"))
                    return 0
                    ;;
                --gc)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --boot-cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --with)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --procfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -w)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --refork-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rest-mold-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory-budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pidfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --boot-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain-grace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hijacked-drain-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --probe-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --warm-up)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --probe-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-boot-failures)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --head-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-handshake-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --body-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-body-rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --idle-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --send-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stream-idle-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeouts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeout-header)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout-interrupts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slow-request)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-target)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-head)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-fields)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-body)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --body-memory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --response-buffer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --response-spool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-buffers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-connections)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-tls-handshakes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --http2-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-queue)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --affinity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fibers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-fibers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fiber-scheduler)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --spool-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-spool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --app-max-spool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --static-files)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --follow-symlinks)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --compress)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sendfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-held)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-held-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-message)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hub-history)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hub-history-time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hub-heartbeat)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hold-cable)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cable)
                    COMPREPLY=($(compgen -W "auto off" -- "${cur}"))
                    return 0
                    ;;
                --max-cable-clients)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cable-message)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cable-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-hub)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-actions)
                    COMPREPLY=($(compgen -W "on off" -- "${cur}"))
                    return 0
                    ;;
                --agent-check)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stuck-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --maintenance-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -W "human json" -- "${cur}"))
                    return 0
                    ;;
                --access-log)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access-log-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access-log-sample)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-start)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-timing)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-id)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --otlp-endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --show-diagnosis)
                    COMPREPLY=($(compgen -W "link local off" -- "${cur}"))
                    return 0
                    ;;
                --user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate-limit-exempt)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --basic-auth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --basic-auth-realm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --no-new-privs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hosts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --variables)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pass-variables)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prestart)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sleep-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help)
            opts="serve doctor config init status top profile restart rollout refork upgrade maintenance stop memory bench help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__bench)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__config)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__doctor)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__help)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__init)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__maintenance)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__memory)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__profile)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__refork)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__restart)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__rollout)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__serve)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__status)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__stop)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__top)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__help__subcmd__upgrade)
            opts=""
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 3 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__init)
            opts="-h --dry-run --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__maintenance)
            opts="-p -h --port --message --retry-after --allow --help on off"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --message)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --retry-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --allow)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__memory)
            opts="-p -h --port --gc --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__profile)
            opts="-p -o -h --port --seconds --worker --mode --group --output --format --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --worker)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mode)
                    COMPREPLY=($(compgen -W "cpu wall gvl allocations" -- "${cur}"))
                    return 0
                    ;;
                --group)
                    COMPREPLY=($(compgen -W "path" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                -o)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --format)
                    COMPREPLY=($(compgen -W "html folded pprof speedscope" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__refork)
            opts="-p -h --port --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__restart)
            opts="-p -h --port --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__rollout)
            opts="-p -h --port --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__serve)
            opts="-p -b -e -c -w -t -h --port --bind --proxy-protocol --proxy-protocol-from --trusted-proxies --canonical-host --redirects --response-headers --http2-cleartext --https --tls-certificate --tls-key --tls-client-ca --tls-client-auth --domain --domain-on-demand --domain-ask --acme-directory --acme-contact --acme-authorities --acme-eab-kid --acme-eab-key-file --acme-dns-hook --state-dir --redirect-https --hsts --environment --early-hints --config --puma-config --ruby --preload --jit --allocator --gc --boot-cache --with --procfile --workers --min-workers --max-workers --threads --refork-after --rest-mold-after --memory-limit --memory-budget --memory-max --cpu-max --pidfile --boot-timeout --drain-timeout --drain-grace --hijacked-drain-timeout --probe-path --warm-up --probe-timeout --max-boot-failures --head-timeout --tls-handshake-timeout --body-timeout --min-body-rate --idle-timeout --send-timeout --stream-idle-timeout --request-timeout --request-timeouts --request-timeout-header --timeout-interrupts --slow-request --max-target --max-head --max-fields --max-body --body-memory --response-buffer --response-spool --max-buffers --max-connections --max-tls-handshakes --http2-streams --max-queue --max-streams --affinity --fibers --max-fibers --fiber-scheduler --spool-dir --max-spool --app-max-spool --max-cache --static-files --follow-symlinks --compress --cache --sendfile --max-held --max-held-streams --max-message --hub-history --hub-history-time --hub-heartbeat --hold-cable --cable --max-cable-clients --max-cable-message --max-cable-streams --max-hub --admin --admin-host --admin-actions --agent-check --stuck-after --maintenance-file --health-path --max-output --log-format --access-log --access-log-format --access-log-sample --request-start --server-timing --request-id --otlp-endpoint --server-user --show-diagnosis --user --rate-limit --rate-limit-exempt --basic-auth --basic-auth-realm --no-new-privs --name --hosts --prefix --variables --pass-variables --prestart --sleep-after --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -b)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --proxy-protocol)
                    COMPREPLY=($(compgen -W "off v1 v2 v1,v2" -- "${cur}"))
                    return 0
                    ;;
                --proxy-protocol-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --trusted-proxies)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --canonical-host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --redirects)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --response-headers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --http2-cleartext)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --https)
                    COMPREPLY=($(compgen -W "on off" -- "${cur}"))
                    return 0
                    ;;
                --tls-certificate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-key)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-client-ca)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-client-auth)
                    COMPREPLY=($(compgen -W "required optional off" -- "${cur}"))
                    return 0
                    ;;
                --domain)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --domain-on-demand)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --domain-ask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-directory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-contact)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-authorities)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-eab-kid)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-eab-key-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --acme-dns-hook)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --state-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --redirect-https)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hsts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --environment)
                    COMPREPLY=($(compgen -W "development production staging test" -- "${cur}"))
                    return 0
                    ;;
                -e)
                    COMPREPLY=($(compgen -W "development production staging test" -- "${cur}"))
                    return 0
                    ;;
                --early-hints)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -c)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --puma-config)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ruby)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --preload)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --jit)
                    COMPREPLY=($(compgen -W "auto on off" -- "${cur}"))
                    return 0
                    ;;
                --allocator)
                    COMPREPLY=($(compgen -W "auto jemalloc system" -- "${cur}"))
                    return 0
                    ;;
                --gc)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --boot-cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --with)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --procfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -w)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-workers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --refork-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rest-mold-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory-budget)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --memory-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cpu-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pidfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --boot-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --drain-grace)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hijacked-drain-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --probe-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --warm-up)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --probe-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-boot-failures)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --head-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-handshake-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --body-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-body-rate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --idle-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --send-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stream-idle-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeouts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-timeout-header)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout-interrupts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slow-request)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-target)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-head)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-fields)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-body)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --body-memory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --response-buffer)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --response-spool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-buffers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-connections)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-tls-handshakes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --http2-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-queue)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --affinity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fibers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-fibers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fiber-scheduler)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --spool-dir)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-spool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --app-max-spool)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --static-files)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --follow-symlinks)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --compress)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cache)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sendfile)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-held)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-held-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-message)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hub-history)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hub-history-time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hub-heartbeat)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hold-cable)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cable)
                    COMPREPLY=($(compgen -W "auto off" -- "${cur}"))
                    return 0
                    ;;
                --max-cable-clients)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cable-message)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-cable-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-hub)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --admin-actions)
                    COMPREPLY=($(compgen -W "on off" -- "${cur}"))
                    return 0
                    ;;
                --agent-check)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stuck-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --maintenance-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --health-path)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -W "human json" -- "${cur}"))
                    return 0
                    ;;
                --access-log)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access-log-format)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --access-log-sample)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-start)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-timing)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --request-id)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --otlp-endpoint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --show-diagnosis)
                    COMPREPLY=($(compgen -W "link local off" -- "${cur}"))
                    return 0
                    ;;
                --user)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rate-limit-exempt)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --basic-auth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --basic-auth-realm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --no-new-privs)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hosts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefix)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --variables)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --pass-variables)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prestart)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sleep-after)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__status)
            opts="-p -h --port --details --slow --json --check --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__stop)
            opts="-p -h --port --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__top)
            opts="-p -h --port --once --backtraces --json --token --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        highball__subcmd__upgrade)
            opts="-p -h --port --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _highball -o nosort -o bashdefault -o default highball
else
    complete -F _highball -o bashdefault -o default highball
fi
