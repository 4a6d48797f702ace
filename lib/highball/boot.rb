# frozen_string_literal: true

# What `highball` runs in the application's folder: becomes the mold.
$LOAD_PATH.unshift(File.expand_path("..", __dir__))

require_relative "mold"

Highball::Mold.start
