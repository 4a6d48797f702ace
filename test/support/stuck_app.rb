# frozen_string_literal: true

# An application whose requests do not end, in several ways, for tests of what shows them.
module StuckApp
  # `crypt` computes with the GVL: then no Ruby code of the worker runs.
  SOURCE = <<~'RUBY'
    LOCK = Mutex.new.tap(&:lock)

    def stuck_in_sleep = sleep
    def stuck_in_mutex = LOCK.synchronize {}
    def stuck_in_loop = loop {}
    def stuck_with_gvl = "x".crypt("$6$rounds=900000000$saltsalt")

    def hostile
      Thread.current.name = "\e]0;owned\a<b>"
      Thread.current.define_singleton_method(:backtrace) do
        ["a.rb:1:in `\e[2J<img src=x onerror=document.title='owned'>\u202e'", *Array.new(10_000) { "</script><script>document.title='owned'</script>\nforged" }]
      end
      sleep
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when %r{\A/sleep} then stuck_in_sleep
      when %r{\A/mutex} then stuck_in_mutex
      when %r{\A/loop} then stuck_in_loop
      when %r{\A/native} then stuck_with_gvl
      when %r{hostile} then hostile
      end
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    }
  RUBY

  # What there is to see of each.
  DOING = {
    "sleep" => "sleeps",
    "mutex" => "waits for a mutex",
    "loop" => /computes|waits for the GVL|runs Ruby code/
  }.freeze

  private

  def stuck_app = folder_with("config.ru" => SOURCE)

  # Sends these requests, and waits until workers have begun them.
  def begin_requests(server, *targets)
    @clients = Array(@clients) + targets.map do |target|
      server.connect.tap { |client| client.send_request("GET", target) }
    end
    wait_for("the requests to begin") do
      server.status["workers"].sum { |worker| worker["in_flight"] } >= @clients.length
    end
  end

  # 12 requests that do not end: all threads of 4 workers.
  def stick_all(server)
    targets = Array.new(12) { |index| "/#{DOING.keys[index % 3]}/#{index}?token=secret" }
    begin_requests(server, *targets)
    targets
  end
end
