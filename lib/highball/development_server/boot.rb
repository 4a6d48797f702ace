# frozen_string_literal: true

# What `highball` becomes where Highball itself does not run.
$LOAD_PATH.unshift(File.expand_path("../..", __dir__))

require_relative "command"

Highball::DevelopmentServer::Command.new(ARGV.dup).run
