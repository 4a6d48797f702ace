# What is no statement is Ruby.
require "etc"
require "fileutils"

FileUtils.mkdir_p("tmp/pids")
cpus = [Etc.nprocessors, 2].min

def fetch_number(name, usual) = Integer(ENV.fetch(name, usual))

workers cpus.positive? ? 2 : 0
threads fetch_number("MIN", 1), fetch_number("MAX", 6)
pidfile "tmp/pids/server.pid" if Dir.exist?("tmp/pids")

case ENV.fetch("RACK_ENV", "development")
when "production" then log_requests false
else log_requests
end

puts "[puma.rb] #{cpus} CPUs"
