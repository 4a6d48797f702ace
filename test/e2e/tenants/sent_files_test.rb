# frozen_string_literal: true

require_relative "../../support/tenants_test_case"

# Files that an application names in `X-Sendfile`: they are opened with the rights of its user, whatever folders its own
# configuration allows.
class TenantSentFilesTest < TenantsTestCase
  OF_VICTIM = "the victim's own"
  NAMING = <<~'RUBY'
    run ->(env) { [200, { "x-sendfile" => env["QUERY_STRING"] }, []] }
  RUBY

  def test_files_of_others_are_refused
    victim = victim_app("private/a.txt" => OF_VICTIM)
    attacker = attacker_app("config.ru" => NAMING, "own/a.txt" => "own",
                            "config/highball.toml" => "sendfile = ['own', '#{victim}', '#{@place}', '/etc', '/root']\n")
    { "to-file" => "#{victim}/private/a.txt", "to-folder" => victim, "to-root" => @root_file }.each do |name, target|
      as_attacker { File.symlink(target, File.join(attacker, "own", name)) }
    end
    server = serve_tenants(attacker, victim)
    assert_equal [200, "own"], asked(server, "#{attacker}/own/a.txt")
    ["#{victim}/private/a.txt", "#{attacker}/own/to-file", "#{attacker}/own/to-folder/private/a.txt", @root_file,
     "#{attacker}/own/to-root", "/etc/shadow", "/proc/self/environ"].each do |path|
      assert_equal [404, "Not Found\n"], asked(server, path), path
    end
    assert_victim_serves(server)
  end

  private

  def asked(server, path)
    answer = ask_attacker(server, "/?#{path}")
    [answer.status, answer.body]
  end
end
