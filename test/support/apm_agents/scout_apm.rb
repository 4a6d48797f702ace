# frozen_string_literal: true

require_relative "agent_double"

# As scout_apm 6.2: without a server that it knows, and without a library for jobs, it starts with the first request
# of a process. Each process writes what it has recorded to a file, also at the end; whichever process comes first
# sends the files of all.
module ScoutApm
  CURRENT = :scout_request
  FOLDER = File.join(Dir.pwd, "tmp")

  @recorded = []
  @lock = Mutex.new

  module_function

  def start
    return if @thread&.alive?

    at_exit { stop }
    @running = true
    @thread = Thread.new { work }
  end

  def work
    while @running
      sleep AgentDouble::MINUTE
      write
      send_files
    end
  end

  def stop
    @running = false
    write
    @thread.wakeup.join if @thread&.alive?
  end

  def write
    batch = @lock.synchronize { @recorded.shift(@recorded.length) }
    return if batch.empty?

    @written = @written.to_i + 1
    name = File.join(FOLDER, "scout_#{Process.pid}_#{@written}")
    File.write("#{name}.unfinished", batch.map { |facts| "#{JSON.generate(facts)}\n" }.join)
    File.rename("#{name}.unfinished", "#{name}.data")
  end

  def send_files
    Dir[File.join(FOLDER, "scout_*.data")].each do |path|
      File.rename(path, claimed = path.sub(/data\z/, "claimed"))
      AgentDouble.report("scout", File.readlines(claimed).map { |line| JSON.parse(line, symbolize_names: true) })
      File.unlink(claimed)
    rescue Errno::ENOENT
      next # another process was first
    end
  end

  def current = Thread.current[CURRENT]

  def around(env)
    request = Thread.current[CURRENT] = AgentDouble::Transaction.of(env, queue_time(env))
    yield
  ensure
    Thread.current[CURRENT] = nil
    @lock.synchronize do
      @recorded << request.facts
      start
    end
  end

  # Ten digits of seconds, and the rest.
  def queue_time(env)
    digits = (env["HTTP_X_QUEUE_START"] || env["HTTP_X_REQUEST_START"] || return).gsub(/t=|\./, "")
    waited = Time.now.to_f - "#{digits[0, 10]}.#{digits[10, 13]}".to_f
    waited unless waited.negative?
  end
end

AgentDouble.install("scout", ScoutApm)
