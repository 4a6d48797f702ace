# frozen_string_literal: true

# Whether `highball profile` and stackprof see the same: the same application and the same requests, in turn below
# Highball and in a Ruby whose main thread makes them. (stackprof records that thread alone, and a server serves in
# others.)
#
#     ruby bench/agreement.rb cpu wall
#
# Needs Debian's ruby-stackprof, ruby-rails and wrk. SECONDS (15) is the length of both profiles.

require "json"
require "open3"
require "tmpdir"
require_relative "../test/support/highball_server"

# Two profiles of a mode, and what they have in common.
class Agreement
  SECONDS = Integer(ENV.fetch("SECONDS", 15))
  TOP = "Rails::Engine#call" # what both profiles have below this
  MOST = 10
  # Highball's middleware takes the place of Rails' own.
  SAME = { "ActionDispatch::Static#call" => "Highball::PublicNames::Passing#call" }.freeze
  # stackprof names the method of a block.
  IN = /(block \(\d+ levels\)|block|rescue|ensure) in /

  # Arguments: the folder of the application, the mode, and the file for the profile.
  OTHER = <<~'RUBY'
    require "stackprof"
    require "json"
    require "rack/mock"
    require "#{ARGV[0]}/config/environment"
    request = lambda do
      env = Rack::MockRequest.env_for("http://127.0.0.1/", "REMOTE_ADDR" => "127.0.0.1")
      status, _, body = Rails.application.call(env)
      body.each { |part| part }
      body.close if body.respond_to?(:close)
      raise "status #{status}" unless status == 200
    end
    300.times { request.call }
    StackProf.start(mode: ARGV[1].to_sym, interval: 5_000, raw: true)
    ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ARGV[3].to_i
    request.call while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
    StackProf.stop
    File.write(ARGV[2], JSON.generate(StackProf.results.slice(:raw, :frames)))
  RUBY

  def initialize(mode)
    @mode = mode
    @folder = Dir.mktmpdir
    @app = File.join(@folder, "blog")
    FileUtils.cp_r(File.join(HighballServer::EXAMPLES, "blog"), @app)
  end

  def run
    ours = shares(stacks_of_highball)
    theirs = shares(stacks_of_stackprof)
    puts "== #{@mode}: shares of the time below #{TOP}, Highball's and stackprof's"
    %w[total own].zip(ours, theirs) { |what, one, other| compare(what, one, other) }
  ensure
    FileUtils.rm_rf(@folder)
  end

  private

  # [[names from the bottom, weight], ...]
  def stacks_of_highball
    server = HighballServer.start(@app, "--access-log", "none", "--gc", "off", workers: 1, threads: 1, within: 120)
    seconds = SECONDS.to_s
    load = spawn("wrk", "-t1", "-c1", "-d#{SECONDS + 10}s", "http://127.0.0.1:#{server.port}/", out: File::NULL)
    sleep 5 # as the other one, it is warm
    profile = HighballServer.run("profile", "--mode", @mode, "--seconds", seconds, "--output", "-", *server.which,
                                 within: SECONDS + 60)
    Process.wait(load)
    server.finish
    profile.first.lines.map { |line| line.rpartition(" ").then { |stack, _, weight| [stack.split(";"), weight.to_i] } }
  end

  def stacks_of_stackprof
    result = File.join(@folder, "stackprof")
    env = { "RAILS_ENV" => "production", "SECRET_KEY_BASE" => "x" * 64 }
    arguments = [@app, @mode, result, SECONDS.to_s]
    output, ended = Open3.capture2e(env, "ruby", "--yjit", "-", *arguments, chdir: @app, stdin_data: OTHER)
    abort output unless ended.success?
    profile = JSON.parse(File.read(result))
    names = profile["frames"].transform_values { |frame| frame["name"] }
    stacks = []
    raw = profile["raw"]
    while (length = raw.shift)
      stacks << [raw.shift(length).map { |frame| names[frame.to_s] }, raw.shift]
    end
    stacks
  end

  # The share of each method with what it calls, and alone, below TOP.
  def shares(stacks)
    below = stacks.filter_map do |frames, weight|
      names = frames.map { |frame| frame.gsub(IN, "").then { |name| SAME.fetch(name, name) } }
      from = names.index(TOP)
      [names.drop(from).reject { |name| name.start_with?("(") }, weight] if from
    end
    all = below.sum(&:last).to_f
    below.each_with_object([Hash.new(0), Hash.new(0)]) do |(names, weight), (total, own)|
      names.uniq.each { |name| total[name] += weight / all }
      own[names.last] += weight / all
    end
  end

  def compare(what, ours, theirs)
    top = [ours, theirs].map { |shares| shares.max_by(MOST, &:last).map(&:first) }
    puts "#{what}: #{(top[0] & top[1]).length} of the first #{MOST} in common"
    top[0].each { |name| puts "  #{percent(ours[name])}  #{percent(theirs[name])}  #{name}" }
  end

  def percent(share) = "#{(share * 100).round(1)} %".rjust(7)
end

ARGV.each { |mode| Agreement.new(mode).run }
