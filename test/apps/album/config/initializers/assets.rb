# frozen_string_literal: true

# Sprockets serves these; Propshaft serves all.
Rails.application.config.assets.precompile&.push("action_cable.js", "album.js")
