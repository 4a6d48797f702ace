# For several releases of Puma, and for machines of several sizes.
newer = Gem::Version.new(Puma::Const::PUMA_VERSION) >= Gem::Version.new("7")
workers Puma.jruby? ? 0 : [Etc.nprocessors, 2].min if ENV["RACK_ENV"] == "production"
threads 0, Puma::Configuration::DEFAULTS[:max_threads]
bind "tcp://#{Socket.gethostname ? '127.0.0.1' : '::1'}:0"
tag "#{File.basename(Dir.pwd)} #{Time.now.iso8601} #{URI('http://localhost').host}"
send(newer ? :before_worker_boot : :on_worker_boot) { FileUtils.mkdir_p("tmp") }
pidfile File.join(Dir.tmpdir, "by_version.#{Process.pid}") if ENV["NEVER_SET"]
