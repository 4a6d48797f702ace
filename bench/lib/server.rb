# frozen_string_literal: true

module Bench
  # One running server on a loopback port of its own.
  class Server
    START_SECONDS = 30
    STOP_SECONDS = 10
    POLL_SECONDS = 0.02
    BODY = "Hello World"
    # Without the shell's settings that would change what is measured; with the gem of this tree.
    ENVIRONMENT = %w[RACK_ENV RAILS_ENV APP_ENV PORT WEB_CONCURRENCY RAILS_MAX_THREADS RUBYOPT BUNDLE_GEMFILE]
                  .to_h { |name| [name, nil] }.merge("HIGHBALL_LIB" => File.join(ROOT, "lib")).freeze
    NOT_YET = [Errno::ECONNREFUSED, Errno::ECONNRESET, EOFError, Net::OpenTimeout, Net::ReadTimeout].freeze

    attr_reader :scheme, :tree

    # Starts a server and waits until it gives the right answer.
    def initialize(scheme, workers:, threads:)
      @scheme = scheme
      @port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }
      @log = Tempfile.new("highball-bench")
      # A process group of its own keeps Ctrl-C away: `stop` ends the server.
      @pid = Process.spawn(ENVIRONMENT, *scheme.command.call(@port, workers, threads).map(&:to_s),
                           in: File::NULL, %i[out err] => @log.path, chdir: ROOT, pgroup: true)
      @tree = ProcessTree.new(@pid)
      wait_for_answer
    rescue StandardError, SignalException
      stop
      raise
    end

    def url = "http://127.0.0.1:#{@port}/"

    # Ends all processes, by force if need be; says so if there was need.
    def stop
      return unless @pid

      pids = @tree.pids
      signal(:TERM, @pid) unless ended?
      return if wait_until(STOP_SECONDS) { ended? && pids.none? { |pid| signal(0, pid) } }

      left = pids.select { |pid| signal(:KILL, pid) }
      warn "#{@scheme.title} still had processes #{STOP_SECONDS} s after TERM; killed #{left.join(', ')}"
      wait_until(STOP_SECONDS) { ended? }
    ensure
      @log.close!
    end

    private

    def wait_for_answer
      answer = wait_until(START_SECONDS) { ended? || ask }
      raise failure("ended while it started: #{@status}") if ended?
      raise failure("was not ready within #{START_SECONDS} s") unless answer

      correct = answer.code == "200" && answer.body == BODY && answer["Content-Length"] == BODY.bytesize.to_s
      raise failure("answered #{answer.code} #{answer.to_hash} #{answer.body.inspect}") unless correct
    end

    def ask
      Net::HTTP.start("127.0.0.1", @port, open_timeout: 1, read_timeout: START_SECONDS) do |http|
        http.get("/", "Accept-Encoding" => "identity")
      end
    rescue *NOT_YET
      nil
    end

    def failure(what) = Failure.new("#{@scheme.title} #{what}. Its log:\n#{File.read(@log.path)}")

    # Whether the first process has ended. It is waited for once only.
    def ended?
      _, @status = Process.wait2(@pid, Process::WNOHANG) unless @status
      !@status.nil?
    end

    # Whether the process was there.
    def signal(name, pid)
      Process.kill(name, pid) == 1
    rescue Errno::ESRCH
      false
    end

    def wait_until(seconds)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      until (result = yield)
        return if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

        sleep POLL_SECONDS
      end
      result
    end
  end
end
