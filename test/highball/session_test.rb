# frozen_string_literal: true

# marks: few (it measures how long a sweep takes)

require "minitest/autorun"
require "rack"
require "rack/mock"
require "timeout"
require "tmpdir"
require "highball/session/pstore"

# Sessions in files, as a Rack application and its clients see them. (test/e2e/sessions/sessions_test.rb serves a Rails
# application.)
class SessionTest < Minitest::Test
  def setup
    @parent = Dir.mktmpdir("highball-sessions")
    @folder = File.join(@parent, "sessions")
    @actions = {
      "/add" => ->(session, query) { session.update(query) },
      "/show" => ->(session, _) { session.to_hash },
      "/look" => ->(session, _) { session["user"] },
      "/renew" => ->(session, _) { (session.options[:renew] = true) && session["user"] },
      "/out" => ->(session, _) { session.options[:drop] = true },
      "/none" => ->(_, _) {}
    }
  end

  def teardown
    FileUtils.rm_rf(@parent)
  end

  def test_a_session_is_kept
    cookie = cookie_of(get("/add?user=ada"))
    assert_nil get("/add?colour=red", cookie)["set-cookie"]
    assert_equal '{"user"=>"ada", "colour"=>"red"}', get("/show", cookie).body
    assert_equal 1, files.length
    store = Highball::PStore.new(files.first)
    assert_equal("ada", store.transaction(true) { store["user"] })
  end

  def test_the_cookie_is_for_the_server_only
    header = get("/add?user=ada")["set-cookie"]
    assert_match(/;\s*HttpOnly/i, header)
    assert_match(/;\s*SameSite=Lax/i, header)
    refute_match(/;\s*Secure/i, header)
    assert_match(/;\s*Secure/i, get("https://example.com/add?user=ada")["set-cookie"])
  end

  def test_only_this_user_reads_the_files_and_their_names_tell_no_id
    cookie = cookie_of(get("/add?user=ada"))
    id = cookie[/=(\h+)/, 1]
    [@folder, *Dir.glob("#{@folder}/*/")].each { |folder| assert_equal 0o700, File.stat(folder).mode & 0o777 }
    assert_equal 0o600, File.stat(files.first).mode & 0o777
    private_id = Rack::Session::SessionId.new(id).private_id
    [id, private_id, private_id[/\h+\z/], File.basename(files.first)].each do |text|
      refute_includes File.binread(files.first), text
    end
    [private_id[/\h+\z/], File.basename(files.first)].each do |stolen|
      assert_equal "{}", get("/show", "rack.session=#{stolen}").body
    end
    refute_includes files.first, private_id[/\h+\z/]
  end

  def test_requests_that_only_look_make_no_session
    %w[/look /none /show].each { |path| assert_nil get(path)["set-cookie"] }
    assert_empty files
  end

  def test_ids_of_clients_are_never_taken
    ["forged", "../../etc/passwd", "%2e%2e%2f", "a" * 100_000, "", "\0", "0" * 32].each do |id|
      cookie = cookie_of(get("/add?user=eve", "rack.session=#{id}"))
      assert_match(/\Arack.session=\h{32,64}\z/, cookie)
      refute_equal "rack.session=#{id}", cookie
    end
    assert_equal ["sessions"], Dir.children(@parent)
  end

  def test_a_login_gets_another_id
    before = cookie_of(get("/add?user=ada"))
    after = cookie_of(get("/renew", before))
    refute_equal before, after
    assert_equal "{}", get("/show", before).body
    assert_equal '{"user"=>"ada"}', get("/show", after).body
    assert_equal 1, files.length
  end

  def test_a_logout_ends_the_session_also_for_requests_that_have_begun
    cookie = cookie_of(get("/add?user=ada"))
    @actions["/slow"] = lambda do |session, _|
      session["seen"] = session["user"]
      get("/out", cookie)
    end
    assert_nil get("/slow", cookie)["set-cookie"]
    assert_empty files
    assert_equal "{}", get("/show", cookie).body
  end

  def test_requests_of_a_session_at_the_same_time_lose_nothing
    cookie = cookie_of(get("/add?user=ada&old=1"))
    @actions["/nested"] = lambda do |session, _|
      session["mine"] = "1"
      session.delete("old")
      get("/add?other=2", cookie)
    end
    get("/nested", cookie)
    assert_equal({ "user" => "ada", "other" => "2", "mine" => "1" }.inspect, get("/show", cookie).body)
    threads = Array.new(8) { |number| Thread.new { 20.times { |turn| get("/add?k#{number}-#{turn}=1", cookie) } } }
    threads.each(&:join)
    assert_equal 163, get("/show", cookie).body.count(",") + 1
  end

  def test_sessions_end_when_they_are_not_used
    cookie = cookie_of(get("/add?user=ada"))
    age(files.first, 1000)
    get("/look", cookie) # renews it
    assert_operator Time.now - File.mtime(files.first), :<, 100
    age(files.first, 4000)
    assert_equal "{}", get("/show", cookie).body
    assert_equal 0, store.sweep # a request may still have it
    age(files.first, 5000)
    assert_equal 1, store.sweep
    assert_empty files
  end

  def test_sessions_are_bounded
    assert_raises(Highball::Session::Error) { get("/add?a=#{'x' * 5000}") }
    cookie = cookie_of(get("/add?a=1"))
    assert_raises(Highball::Session::Error) { get("/add?a=#{'x' * 5000}", cookie) }
    assert_equal '{"a"=>"1"}', get("/show", cookie).body
    1000.times { |number| get("/add?number=#{number}") }
    # By their times: two sessions that were made in the same moment are equally new.
    by_folder = ->(found) { found.map { |time, path| [File.dirname(path), time] } }
    newest = by_folder.call(files_with_times).to_h
    Timeout.timeout(20) { store.sweep until files.length == newest.length } # the thread may be at it, too
    assert_equal newest.sort, by_folder.call(files_with_times).sort
  end

  def test_the_thread_sweeps
    get("/add?user=ada")
    files.each { |file| age(file, 5000) }
    Timeout.timeout(20) do
      until files.length < 2
        32.times { get("/add?user=eve") } # more than a sixteenth of the most
        files.last(30).each { |file| age(file, 5000) }
      end
    end
  end

  def test_sessions_are_swept_while_requests_are_served
    count = ENV["HIGHBALL_TEST_LEVEL"] == "full" ? 100_000 : 10_000
    cookie = cookie_of(get("/add?user=ada"))
    make_old_sessions(count)
    sweeping = Thread.new { seconds { assert_equal count, store.sweep } }
    slowest = 0
    while sweeping.alive?
      slowest = [slowest, seconds { assert_equal "ada", get("/look", cookie).body }].max
      sleep 0.005 # until the next request
    end
    assert_operator sweeping.value, :<, 5
    assert_operator slowest, :<, 0.5
    assert_equal 1, files.length
  end

  def test_files_of_others_in_the_folder
    cookie = cookie_of(get("/add?user=ada"))
    shard = File.dirname(files.first)
    secret = File.join(@parent, "secret")
    File.binwrite(secret, Marshal.dump({ "user" => "root" }))
    File.rename(files.first, "#{@parent}/kept")
    File.symlink(secret, name = File.join(shard, File.basename("#{@parent}/kept")))
    File.write("#{shard}/README", "")
    Dir.mkdir("#{shard}/#{'0' * 64}")
    planted = path_of(cookie)
    File.symlink(secret, planted) unless File.symlink?(planted)
    assert_equal "{}", get("/show", cookie).body
    age(secret, 5000)
    store.sweep
    assert_path_exists secret
    assert_equal ["README", "0" * 64], Dir.children(shard).sort.reverse & ["README", "0" * 64]
    assert File.symlink?(name) || File.symlink?(planted)
  end

  def test_files_that_are_no_sessions_are_none
    cookie = cookie_of(get("/add?user=ada"))
    [+"", "junk", Marshal.dump([1]), Marshal.dump({ "user" => "ada" })[0..-3]].each do |content|
      File.binwrite(files.first, content)
      assert_equal "{}", get("/show", cookie).body
    end
  end

  # A process that is killed while it changes a session leaves the old state or the new one: it writes once, and cuts
  # the file off if the session has become shorter.
  def test_a_process_that_is_killed_leaves_a_whole_session
    cookie = cookie_of(get("/add?text=#{'x' * 2000}"))
    inode = File.stat(files.first).ino
    states = ["y" * 3000, "z" * 10, "a" * 2500, "b"]
    states.product(%i[pwrite truncate]).each do |text, step|
      before = get("/show", cookie).body
      pid = fork { kill_before(step) && get("/add?text=#{text}", cookie) && exit!(0) }
      Process.wait(pid)
      assert_includes [before, { "text" => text }.inspect], get("/show", cookie).body
      get("/add?text=#{text}", cookie)
      assert_equal({ "text" => text }.inspect, get("/show", cookie).body)
    end
    assert_equal inode, File.stat(files.first).ino
  end

  def test_readers_never_see_half_a_change
    cookie = cookie_of(get("/add?text=x"))
    pid = fork { loop { [3000, 10, 4050].each { |length| get("/add?text=#{rand(10).to_s * length}", cookie) } } }
    500.times { assert_match(/\A\{"text"=>"(.)\1*"\}\z/, get("/show", cookie).body.gsub(" => ", "=>")) }
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def test_a_folder_that_others_can_read_is_refused
    Dir.mkdir(@folder, 0o755)
    assert_match(/chmod 700/, assert_raises(Highball::Session::Error) { store }.message)
    Dir.rmdir(@folder)
    File.symlink("/tmp", @folder)
    assert_raises(Highball::Session::Error) { store }
  end

  private

  def kill_before(step)
    File.prepend(Module.new { define_method(step) { |*| Process.kill(:KILL, Process.pid) } })
  end

  def store
    @store ||= Highball::Session::PStore.new(method(:app), folder: @folder, lifetime: 3600, most: 256,
                                                           most_bytes_each: 4096)
  end

  def app(env)
    request = Rack::Request.new(env)
    result = @actions.fetch(request.path_info).call(request.session, request.GET)
    [200, { "content-type" => "text/plain" }, [result.is_a?(Hash) ? result.inspect : result.to_s]]
  end

  def get(path, cookie = nil)
    Rack::MockRequest.new(store).get(path, { "HTTP_COOKIE" => cookie }.compact)
  end

  def cookie_of(response)
    response["set-cookie"][/\A[^;]+/]
  end

  def files = files_with_times.map(&:last)

  # The oldest first.
  def files_with_times
    found = Dir.glob("#{@folder}/*/*").filter_map do |path|
      stat = File.lstat(path)
      [stat.mtime, path] if stat.file?
    rescue Errno::ENOENT # the thread sweeps
      nil
    end
    found.sort
  end

  def path_of(cookie)
    id = Rack::Session::SessionId.new(cookie[/=(\h+)/, 1]).private_id
    name = Digest::SHA256.hexdigest(id)
    File.join(@folder, name[0, 2], name)
  end

  def age(path, seconds)
    time = Time.now - seconds
    File.utime(time, time, path)
  end

  def make_old_sessions(count)
    content = Marshal.dump({ "user" => "x" * 100 })
    old = Time.now - 5000
    count.times do |number|
      name = Digest::SHA256.hexdigest(number.to_s)
      path = File.join(@folder, name[0, 2], name)
      FileUtils.mkdir_p(File.dirname(path), mode: 0o700) if number < 20_000
      File.binwrite(path, content)
      File.utime(old, old, path)
    end
  end

  def seconds
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    yield
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
  end
end
