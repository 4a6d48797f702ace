# frozen_string_literal: true

# An application with jobs: its web adds them, its `bin/jobs` runs them. The queue is a folder; a job is a file that
# moves from `ready` to `claimed` to `done`.
module JobQueue
  # GET /enqueue adds a job, and answers with its number.
  WEB = <<~'RUBY'
    NEXT = ->(folder) { File.open("#{folder}/numbers", "a") { |file| file.flock(File::LOCK_EX) && file.syswrite(".") && file.size } }

    run lambda { |env|
      next [200, {}, [File.read("version")]] unless env["PATH_INFO"] == "/enqueue"

      number = NEXT.call("queue")
      File.write("queue/new/#{number}", "")
      File.rename("queue/new/#{number}", "queue/ready/#{number}")
      [200, {}, [number.to_s]]
    }
  RUBY

  # The process model of Solid Queue: a supervisor forks a scheduler and workers, and replaces processes that end. It
  # passes TERM on; then workers finish their jobs. Processes end when their supervisor is gone. A supervisor releases
  # the jobs that dead workers have claimed.
  RUNNER = <<~'RUBY'
    #!/usr/bin/env ruby
    VERSION = File.read("version")
    $stdout.sync = true

    note = ->(file, text) { File.open("queue/#{file}", "a") { |open| open.syswrite("#{text}\n") } }

    # A lock tells whether another scheduler runs: the kernel drops it when the process is gone, and not before.
    scheduler = lambda do |goes_on|
      lock = File.open("queue/lock", "a+")
      note.call("violations", "#{VERSION} beside #{lock.read}") unless lock.flock(File::LOCK_EX | File::LOCK_NB)
      lock.truncate(0)
      lock.syswrite(VERSION)
      sleep 0.05 while goes_on.call
    end

    worker = lambda do |goes_on|
      while goes_on.call
        number = Dir.children("queue/ready").min_by(&:to_i)
        next sleep(0.02) unless number

        claimed = "queue/claimed/#{number}.#{Process.pid}"
        begin
          File.rename("queue/ready/#{number}", claimed)
        rescue Errno::ENOENT
          next # another one has it
        end
        sleep rand(0.01..0.1)
        note.call("runs", "#{number} #{VERSION}")
        File.rename(claimed, "queue/done/#{number}")
      end
    end

    roles = { scheduler: scheduler, worker1: worker, worker2: worker }
    forks = {}
    supervisor = Process.pid
    start = lambda do |role|
      pid = fork do
        stopping = false
        %w[TERM INT].each { |signal| trap(signal) { stopping = true } }
        trap("QUIT") { exit!(1) }
        roles.fetch(role).call(-> { !stopping && Process.ppid == supervisor })
        exit!(0)
      end
      forks[pid] = role
    end

    alive = lambda do |pid|
      Process.kill(0, pid)
    rescue Errno::ESRCH
      false
    end

    release = lambda do
      Dir.children("queue/claimed").each do |name|
        number, pid = name.split(".").map(&:to_i)
        File.rename("queue/claimed/#{name}", "queue/ready/#{number}") unless alive.call(pid)
      end
    end

    signals = []
    %w[TERM INT QUIT].each { |signal| trap(signal) { signals << signal } }
    note.call("starts", VERSION)
    puts "Started Supervisor of #{VERSION}"
    release.call
    roles.each_key { |role| start.call(role) }
    while signals.empty?
      while (pid = Process.wait(-1, Process::WNOHANG))
        role = forks.delete(pid)
        release.call
        start.call(role) if role
      end
      sleep 0.05
    end
    signal = signals.first == "QUIT" ? "QUIT" : "TERM"
    forks.each_key { |child| Process.kill(signal, child) }
    Process.waitall
  RUBY

  private

  # Files of the application: {file => content}; its configuration is `puma`.
  def queue_files(puma)
    folders = %w[new ready claimed done].to_h { |name| ["queue/#{name}/.keep", ""] }
    { "config.ru" => WEB, "config/puma.rb" => puma, "version" => "one", "bin/jobs" => RUNNER }.merge(folders)
  end

  def queue_app(puma)
    folder = folder_with(queue_files(puma))
    FileUtils.rm(Dir.glob("#{folder}/queue/*/.keep"))
    FileUtils.chmod(0o755, "#{folder}/bin/jobs")
    folder
  end

  def enqueue(server) = Integer(server.get("/enqueue").body)
  def jobs_in(folder, state) = Dir.children("#{folder}/queue/#{state}").map(&:to_i).sort

  def lines_of(folder, file)
    path = "#{folder}/queue/#{file}"
    File.exist?(path) ? File.readlines(path, chomp: true) : []
  end

  def runs(folder) = lines_of(folder, "runs").map { |line| line.split.first.to_i }
end
