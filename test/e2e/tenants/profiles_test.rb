# frozen_string_literal: true

require "open3"
require_relative "../../support/tenants_test_case"

# Profiles of applications of several users: root alone gets them, each has one application, and no tenant steers where
# root writes.
class TenantProfilesTest < TenantsTestCase
  # Computes in a method with this name, and answers with its control sockets.
  def app(name)
    { "config.ru" => "def #{name}\n  ends = Time.now + 0.05\n  nil while Time.now < ends\nend\n" \
                     "run ->(_) { #{name}; [200, {}, [Process.uid.to_s]] }\n" }
  end

  def test_a_profile_has_the_frames_of_one_application_and_belongs_to_the_caller
    server = serve_tenants(attacker_app(app("of_attacker")), victim_app(app("of_victim")))
    place = folder_with
    path = File.join(place, "a.folded")
    asked_of_both(server) { profile("victim", "--seconds", "2", "--output", path) }
    text = File.read(path)
    assert_includes text, "of_victim"
    refute_includes text, "of_attacker"
    assert_equal [0, 0o644], [File.stat(path).uid, File.stat(path).mode & 0o777]
    text, ended = profile("--seconds", "1", "--output", File.join(place, "b.folded"))
    refute_predicate ended, :success?
    assert_match(/the server has 2 applications; name one of them: attacker, victim/, text)
  end

  def test_a_tenant_gets_no_profile_of_anothers_application
    serve_tenants(attacker_app(app("of_attacker")), victim_app(app("of_victim")))
    become = ["setpriv", "--reuid=#{ATTACKER}", "--regid=#{Etc.getpwnam(ATTACKER).gid}", "--clear-groups", "--"]
    %w[attacker victim].each do |name|
      text, ended = profile(name, "--seconds", "1", "--output", "-", through: become)
      refute_predicate ended, :success?, text
      refute_match(/of_victim|of_attacker/, text)
    end
  end

  # A link at the place of root's file leads to a file that root alone may write.
  def test_root_follows_no_link_of_a_tenant
    serve_tenants(attacker_app(app("of_attacker")), victim_app(app("of_victim")))
    place = folder_with
    FileUtils.chown(ATTACKER, nil, place)
    path = File.join(place, "profile.html")
    File.symlink(@root_file, path)
    text, ended = profile("victim", "--seconds", "1", "--output", path)
    refute_predicate ended, :success?
    assert_match(/exists already, and is not overwritten/, text)
    assert_root_file_untouched
  end

  # The attacker's worker answers with what is no profile.
  def test_a_worker_that_lies
    source = "#{app('of_attacker')['config.ru']}\nHighball::Native.define_singleton_method(:profile) do |*all|\n  " \
             "IO.for_fd(all.last, autoclose: false).write(\"highball-profile 1 1 1 1\\nn 9 9 9\\n\")\nend\n"
    server = serve_tenants(attacker_app("config.ru" => source), victim_app(app("of_victim")))
    text, ended = profile("attacker", "--seconds", "1", "--output", "-")
    refute_predicate ended, :success?
    assert_match(/worker 1: its result is malformed/, text)
    assert_equal 200, ask_victim(server).status
  end

  private

  def profile(*words, through: [])
    environment = HighballServer::ENVIRONMENT.merge(server_env)
    Open3.capture2e(environment, "timeout", "60", *through, HighballServer::BINARY, "profile", *words, chdir: "/")
  end

  def asked_of_both(server)
    ended = false
    clients = %i[ask_attacker ask_victim].map { |ask| Thread.new { send(ask, server) until ended } }
    yield
  ensure
    ended = true
    clients.each(&:join)
  end
end
