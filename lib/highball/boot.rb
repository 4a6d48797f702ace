# frozen_string_literal: true

# `highball` runs this in the application's folder: it becomes the mold. Its argument, if any, is the application's
# file. It is taken from ARGV, so that the application sees no arguments.
$LOAD_PATH.unshift(File.expand_path("..", __dir__))

require_relative "compiler"
Highball::Compiler.start_again(__FILE__)

# What gems take for the name of the server, or of the program: in traces, and in lists of a database's clients.
$PROGRAM_NAME = "highball"

require_relative "boot_cache"
Highball::BootCache.take_decision
Highball::BootCache.during { require_relative "mold" }

Highball::Mold.start(ARGV.shift)
