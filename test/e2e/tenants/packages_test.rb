# frozen_string_literal: true

require_relative "../../support/tenants_test_case"

# The launcher of the source tree, run by root for a tenant's application: the file `debian-packages` of a tenant does
# not decide what is installed.
class TenantPackagesTest < TenantsTestCase
  def test_a_tenant_chooses_no_packages_for_root
    app = attacker_app("debian-packages" => "no-such-package-here\n-oDir=/\n--allow-remove\n\e[2Jx\n$(touch x)\n")
    tools = folder_with("apt-get" => "#!/bin/sh\necho \"$@\" >>\"$(dirname \"$0\")/asked\"\n")
    %w[sudo apt-cache].each { |name| FileUtils.cp("#{tools}/apt-get", "#{tools}/#{name}") }
    File.chmod(0o755, *Dir.glob("#{tools}/*"))
    output, ended = launch(app, "PATH" => "#{tools}:#{ENV.fetch('PATH')}")
    assert_predicate ended, :success?, output
    assert_includes output, "#{app}/debian-packages names packages that are not installed"
    assert_match(/^  sudo apt-get install [-a-z ]* no-such-package-here$/, output)
    refute_includes output, "\e"
    refute_path_exists "#{tools}/asked"
  end

  def test_the_launcher_reads_no_link_and_waits_for_no_fifo_of_a_tenants
    app = attacker_app
    root_file = @root_file
    { "a link" => -> { File.symlink(root_file, "#{app}/debian-packages") },
      "a FIFO" => -> { File.mkfifo("#{app}/debian-packages") },
      "without an end" => -> { File.symlink("/dev/zero", "#{app}/debian-packages") } }.each do |what, make|
      FileUtils.rm_f("#{app}/debian-packages")
      as_attacker { make.call }
      output, ended = launch(app)
      assert_predicate ended, :success?, "#{what}: #{output}"
      refute_match(/names packages/, output, what)
    end
  end

  private

  def launch(app, more = {})
    command = [File.join(HighballServer::ROOT, "bin/highball"), "config", "nginx", app]
    pid = nil
    output = IO.pipe do |read, write|
      pid = Process.spawn(HighballServer::ENVIRONMENT.merge(more), *command, in: File::NULL, %i[out err] => write)
      write.close
      assert read.wait_readable(600), "the launcher does not end"
      read.read
    end
    [output, Process.wait2(pid).last]
  end
end
