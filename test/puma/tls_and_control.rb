# TLS in Puma, and its control server.
threads 2, 4
port 0
ssl_bind '0.0.0.0', '9443', key: 'server.key', cert: 'server.crt', verify_mode: 'none'
bind 'ssl://0.0.0.0:9444?key=server.key&cert=server.crt'
activate_control_app 'unix:///tmp/pumactl.sock', no_token: true
state_path 'tmp/puma.state'
state_permission 0o640
daemonize false
bind_to_activated_sockets 'only'
