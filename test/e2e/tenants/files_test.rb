# frozen_string_literal: true

# marks: long

require "socket"
require_relative "../../support/tenants_test_case"

# Files that an application can influence: whatever it puts there, Highball reads, sends and shows only what the
# application itself could read.
class TenantFilesTest < TenantsTestCase
  OF_VICTIM = "the victim's own"
  # Too large for the cache in memory: the file stays open while it is sent.
  LARGE = OF_VICTIM * 20_000
  # Answers with its user, and raises an exception where the request asks for one.
  FAILING = "#{FACTS}\nuse Class.new { def initialize(app) = @app = app\n" \
            "def call(env) = env['PATH_INFO'] == '/fail' ? raise('alas') : @app.call(env) }\n".freeze
  DESCRIPTORS = 80
  PROCESS = %w[cwd root exe maps environ mem auxv cmdline status limits mountinfo map_files net/tcp].freeze
  OF_KERNEL = ["/proc/version", "/proc/mounts", "/proc/1/cmdline", "/proc/sys/kernel/hostname",
               "/sys/kernel/uevent_seqnum", "/dev/stdin", "/dev/stdout", "/dev/stderr"].freeze

  def test_links_into_processes_lead_nowhere
    links = (0..DESCRIPTORS).to_h { |number| ["fd#{number}", "/proc/thread-self/fd/#{number}"] }
    (0..DESCRIPTORS).each { |number| links["self#{number}"] = "/proc/self/fd/#{number}" }
    (3..20).each { |number| links["dev#{number}"] = "/dev/fd/#{number}" }
    server = serve_tenants(attacker_with(links), victim_with_files)
    # The victim's file is open while it is sent, and for a moment after it.
    2.times do
      assert_equal LARGE.bytesize, ask_victim(server, "/large.txt").body.bytesize
      links.each_key { |name| assert_not_served(server, "/#{name}") }
    end
  end

  def test_files_of_the_kernel_are_not_served
    links = PROCESS.to_h { |name| ["process-#{name.tr('/', '-')}", "/proc/self/#{name}"] }
    OF_KERNEL.each_with_index { |path, number| links["kernel#{number}"] = path }
    victim = victim_with_files
    { "cwd" => "/proc/self/cwd/lib/highball/boot.rb", "root" => "/proc/self/root#{lib}/highball/boot.rb",
      "dots" => "/proc/self/../..#{lib}/highball/boot.rb",
      "open" => "/proc/self/cwd/victim/public/large.txt" }.each { |name, target| links["by-#{name}"] = target }
    server = serve_tenants(attacker_with(links), victim)
    (links.keys - ["by-dots"]).each { |name| assert_not_served(server, "/#{name}") }
    assert_victim_serves(server)
  end

  def test_files_of_others_are_not_served_however_they_are_reached
    victim = victim_with_files(".env" => OF_VICTIM)
    attacker = attacker_with("to-root" => @root_file, "to-dotfile" => File.join(victim, ".env"),
                             "to-file" => File.join(victim, "public/large.txt"),
                             "to-folder" => File.join(victim, "public"), "to-place" => "../../victim")
    File.link(@root_file, File.join(attacker, "public/hard.txt"))
    File.link(File.join(victim, ".env").tap { |path| File.chmod(0o600, path) }, File.join(attacker, "public/hard-env"))
    FileUtils.ln_s(@root_file, File.join(attacker, "public/page.html.gz"))
    File.write(File.join(attacker, "public/page.html"), "page")
    server = serve_tenants(attacker, victim)
    %w[/to-root /to-dotfile /to-file /to-folder/large.txt /to-place/public/large.txt /hard.txt /hard-env].each do |path|
      assert_not_served(server, path)
    end
    answer = ask_attacker(server, "/page", { "Accept-Encoding" => "gzip" })
    assert_equal [nil, "page"], [answer["content-encoding"], answer.body], "the compressed sibling is root's"
    assert_equal LARGE.bytesize, ask_victim(server, "/large.txt").body.bytesize
  end

  def test_what_is_no_file_is_not_served_and_nothing_waits_for_it
    attacker = attacker_with("zero" => "/dev/zero", "random" => "/dev/urandom", "tty" => "/dev/tty",
                             "null" => "/dev/null", "circle" => "circle", "dangling" => "no-such-file")
    %w[pipe index.html page.html style.css.br].each { |name| File.mkfifo(File.join(attacker, "public", name)) }
    File.write(File.join(attacker, "public/style.css"), "p {}")
    listener = UNIXServer.new(File.join(attacker, "public/socket"))
    File.chmod(0o777, File.join(attacker, "public/socket"))
    system("mknod", File.join(attacker, "public/node"), "c", "1", "5")
    FileUtils.chmod("a+r", Dir[File.join(attacker, "public/{pipe,index.html,page.html,node}")])
    server = serve_tenants(attacker, victim_with_files)
    %w[/zero /random /tty /null /circle /dangling /pipe / /page /socket /node].each do |path|
      assert_not_served(server, path)
    end
    assert_equal "p {}", ask_attacker(server, "/style.css", { "Accept-Encoding" => "br" }).body
  ensure
    listener&.close
  end

  def test_files_without_an_end_take_no_memory
    attacker = attacker_with({})
    File.open(File.join(attacker, "public/huge.bin"), "w") { |file| file.truncate(1 << 42) }
    File.open(File.join(attacker, "public/500.html"), "w") { |file| file.truncate(1 << 42) }
    server = serve_tenants(attacker, victim_with_files)
    before = server.memory_bytes
    answer = ask_attacker(server, "/huge.bin", { "Range" => "bytes=#{(1 << 42) - 10}-" })
    assert_equal [206, "\0" * 10], [answer.status, answer.body]
    assert_not_of_page ask_attacker(server, "/fail")
    assert_operator server.memory_bytes - before, :<, 64 << 20
    assert_victim_serves(server)
  end

  def test_odd_names_are_names
    names = ["a\nb", "a\u001b[2Jb", "x" * 255, "-rf", "$(id)", "%2e%2e", "caf\xE9".b, "a b;c", "\u202Etxt"]
    attacker = attacker_with({})
    names.each { |name| File.write(File.join(attacker, "public", name), "odd") }
    server = serve_tenants(attacker, victim_with_files)
    names.each do |name|
      encoded = name.b.gsub(/[^a-z-]/) { |byte| format("%%%02X", byte.ord) }
      answer = ask_attacker(server, "/#{encoded}")
      assert_includes [200, 400], answer.status, name.inspect
    end
    assert_equal "odd", ask_attacker(server, "/%252e%252e").body
    assert_victim_serves(server)
  end

  # A process of the attacker's exchanges a file and links for one another all the time.
  def test_a_swap_at_the_wrong_moment_serves_nothing_else
    victim = victim_with_files
    attacker = attacker_with({})
    public = File.join(attacker, "public")
    File.write(File.join(public, "own"), "own")
    FileUtils.chown(ATTACKER, nil, public)
    targets = [@root_file, "/proc/self/environ", "/proc/self/fd/5", File.join(victim, "public/large.txt"), "own"]
    server = serve_tenants(attacker, victim)
    swapper = swapping(public, "swapped", targets)
    200.times do
      answer = ask_attacker(server, "/swapped")
      next assert_equal("own", answer.body) if answer["last-modified"]

      assert_runs_as ATTACKER, JSON.parse(answer.body)
    end
    assert_nil Process.wait(swapper, Process::WNOHANG), "it has swapped all the time"
  ensure
    stop_process(swapper)
  end

  # The public folder itself.
  def test_a_public_folder_that_leads_into_a_process_has_no_files
    victim = victim_with_files
    ["/proc/self/fd", "/proc/self/cwd/victim/public", "/proc/self", "/dev/fd"].each do |target|
      attacker = app_of(ATTACKER, { "config.ru" => FACTS }, "attacker")
      FileUtils.ln_s(target, File.join(attacker, "public"), force: true)
      server = serve_tenants(attacker, victim)
      ask_victim(server, "/large.txt")
      %w[0 5 7 9 large.txt maps].each { |name| assert_not_served(server, "/#{name}") }
      server.stop
      FileUtils.rm_rf(attacker)
    end
  end

  def test_error_pages_are_the_attackers_own_or_none
    long
    server = serve_tenants(attacker = attacker_with({}), victim = victim_with_files)
    page = File.join(attacker, "public/500.html")
    [@root_file, "/proc/self/maps", "/proc/self/environ", "/proc/thread-self/fd/5", "/dev/zero", "/dev/urandom",
     File.join(victim, "public/large.txt"), "500.html", "/proc/version"].each do |target|
      assert_page_is_refused(server, page, target) { File.symlink(target, page) }
    end
    assert_page_is_refused(server, page, "a named pipe") { File.mkfifo(page, 0o666) }
    assert_page_is_refused(server, page, "a folder") { Dir.mkdir(page) }
    assert_page_is_refused(server, page, "a hard link") { File.link(@root_file, page) }
    assert_root_file_untouched
  end

  # An exception may name any file and line for the diagnosis to show.
  def test_a_diagnosis_shows_nothing_of_files_that_the_application_cannot_read
    victim = victim_with_files("secret.rb" => "VICTIM = '#{OF_VICTIM}'\n")
    pipe = File.join(@place, "pipe")
    File.mkfifo(pipe, 0o666)
    own = File.join(@place, "attacker/own.rb")
    ["/proc/self/maps", "/proc/self/environ", "/proc/thread-self/fd/5", "/proc/self/cwd/of-root", "/dev/zero", pipe,
     @root_file, File.join(victim, "secret.rb"), own].each do |place|
      shown = sources_shown(place).map { |source| source["file"] }
      assert_equal place == own, shown.include?(place), place
    end
  end

  def test_the_log_in_a_diagnosis_is_one_that_the_application_can_read
    ["/proc/self/maps", "/proc/self/environ", @root_file, "/dev/zero", :pipe, :sparse].each do |target|
      broken = app_of(ATTACKER, { "config.ru" => "raise 'alas'\n", "log/own.log" => "own\n" }, "attacker")
      log = File.join(broken, "log/production.log")
      case target
      when :pipe then File.mkfifo(log, 0o666)
      when :sparse then File.open(log, "w") { |file| file.truncate(1 << 42) }
      else FileUtils.ln_s(target, log)
      end
      shown = diagnosis_of(broken).fetch("log_tail").join("\n")
      refute_match(/#{SECRET}|r-xp|PATH=/, shown, target.to_s)
      FileUtils.rm_rf(broken)
    end
  end

  # Masking must not reveal the content of a file.
  def test_what_stands_in_a_file_of_root_cannot_be_guessed_by_what_is_masked
    other = "another guess, which stands nowhere"
    ["config/master.key", ".env"].each do |name|
      File.write(@root_file, name == ".env" ? "PASSWORD=#{SECRET}\n" : SECRET)
      files = { "config.ru" => "raise 'guesses: #{SECRET}; #{other}'\n", "config/own" => "" }
      broken = app_of(ATTACKER, files, "attacker")
      FileUtils.ln_s(@root_file, File.join(broken, name))
      message = diagnosis_of(broken).dig("error", "message")
      assert_equal "guesses: #{SECRET}; #{other}", message, name
      FileUtils.rm_rf(broken)
    end
  end

  # A version file or a program that the attacker chooses.
  def test_the_choice_of_ruby_reads_nothing_of_others
    %w[.ruby-version .tool-versions mise.toml].each do |name|
      [@root_file, "/dev/zero", "/proc/self/environ", :pipe].each do |target|
        attacker = attacker_with({})
        path = File.join(attacker, name)
        target == :pipe ? File.mkfifo(path, 0o666) : FileUtils.ln_s(target, path)
        server = serve_tenants(attacker, victim_with_files)
        assert_runs_as ATTACKER, facts(server, { "Host" => HOSTS[ATTACKER] })
        assert_includes server.log, "cannot read the file that names the Ruby version", "#{name}: #{target}"
        server.stop
        FileUtils.rm_rf(attacker)
      end
    end
  end

  private

  # The attacker's application, with these links in its public folder.
  def attacker_with(links)
    app = attacker_app("config.ru" => FAILING, "public/own.txt" => "own")
    links.each { |name, target| FileUtils.ln_s(target, File.join(app, "public", name)) }
    app
  end

  # All users could read these files, except that their folder is closed.
  def victim_with_files(files = {})
    folder = File.join(@place, "victim")
    FileUtils.rm_rf(folder)
    victim_app({ "public/large.txt" => LARGE, "public/own.txt" => OF_VICTIM }.merge(files))
  end

  # The application answers: there is no such file.
  def assert_not_served(server, path)
    answer = ask_attacker(server, path)
    assert_equal 200, answer.status, path
    assert_nil answer["last-modified"], "#{path} is served as a file"
    assert_runs_as ATTACKER, JSON.parse(answer.body)
  end

  # Pages are cached for a moment: waits until the old one is out of the cache.
  def assert_page_is_refused(server, page, what)
    FileUtils.rm_rf(page)
    File.write(page, "sorry: #{what}")
    wait_for("the page before #{what}") { ask_attacker(server, "/fail").body == "sorry: #{what}" }
    File.unlink(page)
    yield
    answer = wait_for("the end of the page before #{what}") do
      ask_attacker(server, "/fail").then { |found| found if found.body != "sorry: #{what}" }
    end
    assert_not_of_page answer, what
  end

  # The answer for visitors without an error page of the application.
  def assert_not_of_page(answer, what = nil)
    assert_equal 500, answer.status, what
    assert_operator answer.body.bytesize, :<, 500, what
    refute_match(/#{SECRET}|#{OF_VICTIM}|r-xp|PATH=|Linux version/, answer.body, what)
  end

  def swapping(folder, name, targets)
    user = Etc.getpwnam(ATTACKER)
    fork do
      Process::GID.change_privilege(user.gid)
      Process::UID.change_privilege(user.uid)
      ends_at = Deadline.now + 120
      while Deadline.now < ends_at
        targets.each do |target|
          File.symlink(target, File.join(folder, "next"))
          File.rename(File.join(folder, "next"), File.join(folder, name))
        end
      end
      exit!(0)
    end
  end

  def stop_process(pid)
    return unless pid

    HighballServer.kill(pid)
    Process.wait(pid)
  rescue Errno::ECHILD
    nil
  end

  # The source lines in `highball doctor`, when an exception names this file.
  def sources_shown(place)
    files = { "config.ru" => "raise SyntaxError, '#{place}:1: alas'\n", "own.rb" => "OWN = 1\n" }
    broken = app_of(ATTACKER, files, "attacker")
    diagnosis = diagnosis_of(broken)
    assert_equal place, diagnosis.dig("error", "file")
    refute_match(/#{SECRET}|VICTIM =|r-xp/, JSON.generate(diagnosis), place)
    diagnosis.fetch("sources").tap { FileUtils.rm_rf(broken) }
  end

  # The diagnosis in `highball doctor` of an application that does not boot.
  def diagnosis_of(app)
    output = highball_fails("doctor", "--json", "-e", "production", "-p", "0", app, env: env, within: 60)
    JSON.parse(output[output.index("{\n")..]).fetch("diagnosis")
  end
end
