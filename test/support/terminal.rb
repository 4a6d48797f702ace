# frozen_string_literal: true

require "pty"
require_relative "bundled_blog"
require_relative "deadline"

# A command in a pseudo-terminal, and the keyboard of its developer.
class Terminal
  WITHIN = 60
  # It answers no questions about its cursor, which editors of lines ask.
  IRBRC = "%i[USE_MULTILINE USE_SINGLELINE USE_READLINE].each { |name| IRB.conf[name] = false }\n"

  # Otherwise Ctrl-C also drops what programs have written and this end has not read yet (termios(3), NOFLSH).
  KEEPS_OUTPUT = ["sh", "-c", 'stty noflsh && exec "$@"', "sh"].freeze

  PLAIN = { "TERM" => "dumb", "RUBY_DEBUG_NO_RELINE" => "true" }.freeze

  attr_reader :screen, :pid

  def initialize(folder, *command, env: {})
    File.write(irbrc = File.join(folder, "irbrc"), IRBRC)
    environment = HighballServer::ENVIRONMENT.merge(BundledBlog::ENVIRONMENT, PLAIN, "IRBRC" => irbrc, **env)
    @screen = +""
    @output, @input, @pid = PTY.spawn(environment, *KEEPS_OUTPUT, *command, chdir: folder)
    @reader = Thread.new { read }
  end

  def type(line) = @input.puts(line)
  def press(keys) = @input.write(keys)
  def ctrl_c = @input.write("\x03")

  # Waits until this is to be seen behind what was seen before: what it matches.
  def see(pattern)
    from = @seen || 0
    Deadline.wait("#{pattern.inspect} in the terminal", within: WITHIN) do
      found = pattern.match(screen, from)
      @seen = found.end(0) if found
      found
    end
  rescue Deadline::Missed => e
    raise Deadline::Missed, "#{e.message}:\n#{screen}"
  end

  # Waits until the command has ended, and what it has written is on the screen.
  def wait
    _, status = Process.wait2(@pid)
    @pid = nil
    @reader.join(WITHIN) # it ends once no process has the terminal
    status
  end

  # Closes it, as a window is closed.
  def hang_up
    @input.close
    @output.close
  end

  def finish
    @input.close
    HighballServer.kill(@pid, "KILL") if @pid
    @reader.join(5)
  end

  private

  def read
    loop { @screen << @output.readpartial(4096).force_encoding("UTF-8").scrub.delete("\r") }
  rescue IOError, Errno::EIO
    nil # the terminal has been closed
  end
end
