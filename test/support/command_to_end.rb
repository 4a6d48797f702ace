# frozen_string_literal: true

require "open3"

# A command that has to succeed.
module CommandToEnd
  # Runs it to its end: its output. Raises `failed`, a class of errors, if it fails. `options`:
  # those of Open3.capture2e.
  def self.output(*command, failed:, env: {}, **options)
    output, status = Open3.capture2e(env, *command, **options)
    raise failed, "#{command.join(' ')} (#{status}): #{output}" unless status.success?

    output
  end
end
