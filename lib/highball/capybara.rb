# frozen_string_literal: true

require "capybara"
require_relative "default_handler"
require_relative "host_system"

# `Capybara.server = :highball`: the application is served by threads of the test process, so that it sees what the test
# has in its transaction. `Capybara.server = :highball, { threads: 8 }` has more of them.
#
# In a Rails application with Highball in its Gemfile this file is loaded with the system tests. Where there is no other
# server in the Gemfile, nothing has to be set.
# Elsewhere than on Linux, Puma serves it.
Capybara.register_server :highball do |app, port, host, threads: 4, **|
  if Highball::HostSystem.linux?
    require_relative "attached_mold"
    arguments = ["--bind", host, "--port", port.to_s, "--environment", "test"]
    Highball::AttachedMold.new(app, arguments, threads: threads).start
  else
    require_relative "development_server"
    Highball::DevelopmentServer.run_for_tests(app, port, host, threads)
  end
end
