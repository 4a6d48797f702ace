# frozen_string_literal: true

# What `highball` runs in the application's folder: becomes the mold. Its argument, if any, is the application's file;
# the application itself is to see none.
$LOAD_PATH.unshift(File.expand_path("..", __dir__))

require_relative "mold"

Highball::Mold.start(ARGV.shift)
