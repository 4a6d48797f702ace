# frozen_string_literal: true

require "etc"
require_relative "many_apps_test_case"

# A test in which root serves applications of other users, who exist on every Debian and own nothing there.
class UsersTestCase < ManyAppsTestCase
  # Answers with its user, its environment, and the file that the request names.
  FACTS = <<~'RUBY'
    require "json"
    READ = lambda do |path|
      File.binread(path)[0, 10]
    rescue SystemCallError => e
      e.class.name
    end
    run lambda { |env|
      path = env["QUERY_STRING"][/read=(.*)/, 1]
      facts = { "ids" => [Process.uid, Process.euid, Process.gid, Process.egid], "groups" => Process.groups.sort,
                "variables" => ENV.values_at("HOME", "USER", "LOGNAME", "SHELL"), "runtime" => ENV["XDG_RUNTIME_DIR"],
                "folder" => Dir.pwd, "pid" => Process.pid, "session" => Process.getsid, "read" => path && READ.(path) }
      [200, {}, [JSON.generate(facts)]]
    }
  RUBY

  def setup
    super
    skip "needs root, to become another user" unless Process.uid.zero?
    # All users may enter /tmp, which may not be true for other folders of temporary files. The code is copied, because
    # the repository may be in a folder that only its owner may enter.
    @place = Dir.mktmpdir("highball-users", "/tmp")
    @folders << @place
    FileUtils.cp_r(HighballServer::ENVIRONMENT.fetch("HIGHBALL_LIB"), lib)
    open_to_all(@place)
  end

  private

  def lib = File.join(@place, "lib")
  # The mark by which tests find the processes of a server: those of other users are in other process groups.
  def env = { "HIGHBALL_LIB" => lib, "HIGHBALL_PASS_VARIABLES" => HighballServer::MARK }

  # Lets all users read the files that are there now.
  def open_to_all(path)
    FileUtils.chmod_R("a+rX", path)
  end

  # Root may have more groups, and a shell may have left files open: applications must get none of them.
  def serve_as_root(*apps, env: {}, **settings)
    File.write(left_open, "", perm: 0o600)
    through = ["setpriv", "--groups", "0,4,27", "sh", "-c", 'exec "$@" 9<"$0"', left_open]
    serve_many(*apps, through: through, env: root_env.merge(env), **settings)
  end

  def root_env = env.merge(server_env)
  # Where commands find the control socket of a server that root has started.
  def server_env = { "XDG_RUNTIME_DIR" => runtime }
  def left_open = File.join(@place, "left-open")
  def runtime = File.join(@place, "run").tap { |folder| FileUtils.mkdir_p(folder, mode: 0o700) }

  # `highball status --json`. Lines about other servers, which do not answer, may come before the object.
  def server_status(server, within: 30)
    output = highball("status", "--json", *server.which, env: server_env, within: within)
    JSON.parse(output[output.index("{\n")..])
  end

  # A folder with these files that belongs to this user.
  def app_of(user, files, name = user)
    folder = File.join(@place, name)
    files.each do |file, content|
      FileUtils.mkdir_p(File.dirname(File.join(folder, file)))
      File.write(File.join(folder, file), content)
    end
    FileUtils.chown_R(user, Etc.getgrgid(Etc.getpwnam(user).gid).name, folder)
    open_to_all(folder)
    folder
  end

  def facts(server, headers = {}, read: nil)
    answer = server.get("/?#{"read=#{read}" if read}", headers)
    assert_equal 200, answer.status, answer.body
    JSON.parse(answer.body)
  end

  # All facts of the application are this user's.
  def assert_runs_as(name, facts)
    user = Etc.getpwnam(name)
    assert_equal [user.uid, user.uid, user.gid, user.gid], facts["ids"]
    assert_equal `id -G #{name}`.split.map(&:to_i).sort, facts["groups"]
    assert_equal [user.dir, name, name, user.shell], facts["variables"]
  end

  # The rings that a process has mapped: their inodes.
  def rings(pid)
    File.readlines("/proc/#{pid}/maps").filter_map { |line| line.split[4] if line.include?("memfd:highball-ring") }.uniq
  end

  # The memory files, sockets and pipes that a process has open: [device, inode] of each, with the target of its link.
  def private_files(pid)
    Dir.children("/proc/#{pid}/fd").each_with_object({}) do |fd, found|
      link = File.readlink("/proc/#{pid}/fd/#{fd}")
      file = File.stat("/proc/#{pid}/fd/#{fd}")
      found[[file.dev, file.ino]] = link if link.start_with?("/memfd:", "socket:", "pipe:")
    rescue Errno::ENOENT
      next # closed meanwhile
    end
  end
end
