# frozen_string_literal: true

# What `highball` runs in the application's folder, by the application's Ruby, before it starts a server: reads a Puma
# configuration and writes what it says to standard output, as one line of JSON. What the file itself prints goes to
# standard error.
report = $stdout.dup
report.close_on_exec = true
$stdout.reopen($stderr)
# With this option standard input ends with the process that has asked. What is left then of this one's group ends too.
if ARGV.delete("--end-with-stdin")
  asked = $stdin.dup
  asked.close_on_exec = true
  $stdin.reopen(File::NULL)
  Thread.new { Process.kill(:KILL, 0) unless asked.read(1) }
end

require_relative "app"
require_relative "calls"
require_relative "exception_words"
require_relative "message"
require_relative "puma_file"

module Highball
  # What is reported of a Puma configuration.
  module PumaConfig
    module_function

    def report(path)
      file = PumaFile.new
      set_up_gems
      file.read(path)
      hooks = file.hooks.map { |hook| hook.to_h.slice(:statement, :moment, :file, :line) }
      { settings: file.settings.map(&:to_h), notes: file.notes.map(&:to_h), rackup: file.rackup&.to_h,
        directory: file.directory&.to_h, hooks: hooks, skipped: file.skipped.map(&:to_h), error: nil }
    rescue Exception => e # rubocop:disable Lint/RescueException -- the file may raise anything, or exit
      { settings: [], notes: [], rackup: nil, error: error(e, file) }
    end

    # Puma is started by `bundle exec`. Without its gems the application will not boot, and that is explained then.
    def set_up_gems
      App.set_up_gems
    rescue Exception # rubocop:disable Lint/RescueException -- bundler/setup may exit
      nil
    end

    def error(exception, file)
      words = ExceptionWords.new(exception)
      path, line = words.is?("SyntaxError") ? Calls.split(words.message) : nil
      path, line = file.place(words.locations) unless line
      message = words.is?("SystemExit") ? "exit was called" : words.summary
      { message: message[0, 2000], file: path, line: line }
    end
  end
end

path = ARGV.shift
report.write(Highball::Message.encode(Highball::PumaConfig.report(path)), "\n")
report.flush
exit!(0) # the file's at_exit blocks are a server's
