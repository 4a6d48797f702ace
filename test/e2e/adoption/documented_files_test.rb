# frozen_string_literal: true

require "etc"
require "json"
require "openssl"
require "yaml"
require_relative "../../support/documented_code_test_case"

# The documented configuration files: the programs that they are for read them, or their keys are checked.
class DocumentedFilesTest < DocumentedCodeTestCase
  # Top-level keys of files that other tools read; all keys of fly.toml.
  KEYS = {
    "kamal" => %w[service image servers proxy registry env builder ssh volumes accessories aliases],
    "render" => %w[services databases envVarGroups previews],
    "cable" => %w[development test production],
    "kubernetes" => %w[apiVersion kind metadata spec],
    "compose" => %w[name services volumes networks secrets configs],
    "devcontainer" => %w[name image build features forwardPorts postCreateCommand remoteUser customizations],
    "fly" => %w[app primary_region kill_signal kill_timeout http_service internal_port force_https auto_stop_machines
                auto_start_machines min_machines_running path interval timeout grace_period method]
  }.freeze
  INSTRUCTIONS = %w[FROM WORKDIR ENV ARG RUN COPY ADD USER EXPOSE VOLUME LABEL STOPSIGNAL HEALTHCHECK ENTRYPOINT
                    CMD].freeze

  # The Gemfile that the documented diffs apply to.
  GEMFILE = <<~RUBY
    source "https://rubygems.org"
    gem "rails", "~> 8.0"
    gem "puma", ">= 5.0"
    gem "unicorn"
    gem "thruster", require: false
  RUBY

  def test_configuration_files_are_understood
    each_block("toml", nil) do |block|
      stage = self.stage
      file = File.join(stage, "etc/highball/server.toml")
      FileUtils.mkdir_p(File.dirname(file))
      File.write(file, for_this_machine(block).gsub(%r{(?<=")/srv/}, "#{stage}/srv/"))
      block.text.include?("[[app]]") ? assert_serves_all(block, stage, file) : assert_is_read(block, stage, file)
    end
  end

  def test_files_of_platforms_have_known_keys
    each_block("yaml") { |block| assert_keys(block, YAML.safe_load(block.text, aliases: true).keys) }
    each_block("json") { |block| assert_keys(block, JSON.parse(block.text).keys) }
    each_block("toml", "fly") { |block| assert_keys(block, block.text.scan(/^(\w+) =|^\[+(\w+)/).flatten.compact.uniq) }
  end

  def test_ruby_is_ruby
    each_block("ruby") do |block|
      RubyVM::InstructionSequence.compile(block.text)
    rescue SyntaxError => e
      flunk "#{block}: #{e.message}"
    end
  end

  def test_hooks_exist
    each_block("ruby", "hooks") do |block|
      file = File.join(folder_with("highball.rb" => block.text), "highball.rb")
      output, ended = Open3.capture2e("ruby", "-I", File.join(HighballServer::ROOT, "lib"), "-r", "highball", file)
      assert_predicate ended, :success?, "#{block}: #{output}"
    end
  end

  def test_ruby_that_needs_no_server_runs
    lib = File.join(HighballServer::ROOT, "lib")
    each_block("ruby", "alone") do |block|
      output, ended = Open3.capture2e("ruby", "-w", "-I", lib, "-e", block.text, chdir: folder_with)
      assert_predicate ended, :success?, "#{block}: #{output}"
    end
  end

  def test_gemfiles_name_highball
    each_block("ruby", "gemfile") do |block|
      assert_includes gems_of(block, "source 'https://rubygems.org'\n#{block.text}"), "highball"
    end
    each_block("diff", "Gemfile") do |block|
      gone, come = %w[- +].map { |sign| block.lines.grep(/\A[#{sign}]/).map { |line| line[1..] } }
      gone.each { |line| assert_includes GEMFILE.lines(chomp: true), line, block.to_s }
      gems = gems_of(block, ((GEMFILE.lines(chomp: true) - gone) + come).join("\n"))
      assert_includes gems, "highball", block.to_s
      assert_equal gone.map { |line| line[/"([^"]+)"/, 1] }, GEMFILE.scan(/gem "([^"]+)"/).flatten - gems, block.to_s
    end
  end

  def test_nginx_understands_it
    skip "nginx is not installed" unless system("nginx", "-v", %i[out err] => File::NULL)
    each_block("nginx") do |block|
      folder = folder_with
      site = block.text.sub("listen 443", "listen 127.0.0.1:#{free_port}").gsub(%r{/etc/letsencrypt\S+/}, "#{folder}/")
      write_certificate(folder)
      main = File.join(folder, "nginx.conf")
      File.write(main, "pid #{folder}/pid; error_log stderr; events {}\nhttp { access_log off;\n#{site}}\n")
      output, ended = Open3.capture2e("nginx", "-t", "-e", "stderr", "-p", folder, "-c", main)
      assert_predicate ended, :success?, "#{block}: #{output}"
    end
  end

  def test_systemd_understands_it
    skip "systemd-analyze is not installed" unless system("systemd-analyze", "--version", %i[out err] => File::NULL)
    each_block("ini", "drop-in") do |block|
      unit, = HighballServer.run("config", "systemd", File.join(stage, "srv/blog"))
      path = File.join(folder_with("blog.service" => unit + block.text), "blog.service")
      output, ended = Open3.capture2e("systemd-analyze", "verify", "--man=no", path)
      assert ended.success? && output.lines.grep(/blog\.service/).empty?, "#{block}: #{output}"
    end
  end

  def test_logrotate_understands_it
    skip "logrotate is not installed" unless system("logrotate", "--version", %i[out err] => File::NULL)
    each_block("logrotate") do |block|
      stage = self.stage
      path = File.join(folder_with("blog" => block.in_folder(stage)), "blog")
      File.chmod(0o644, path)
      output, ended = Open3.capture2e("logrotate", "--debug", "--state", File.join(stage, "state"), path)
      assert_predicate ended, :success?, "#{block}: #{output}"
      refute_match(/^error:/, output, block.to_s)
    end
  end

  def test_dockerfiles_have_known_instructions
    each_block("dockerfile") do |block|
      block.text.gsub("\\\n", " ").lines(chomp: true).grep_v(/\A(?:#.*)?\z/).each do |line|
        instruction, rest = line.split(" ", 2)
        assert_includes INSTRUCTIONS, instruction, block.to_s
        next unless (array = rest[/\A(?:.* )?(\[.*\])\z/, 1])

        words = JSON.parse(array)
        words.shift(2) if words.first(2) == %w[bundle exec]
        assert_command(block.document, words.drop(1)) if words.first == "highball"
      end
    end
  end

  def test_lines_of_other_files_have_their_form
    each_block("procfile") do |block|
      block.lines.each do |line|
        assert_match(/\A\w+: \S/, line, block.to_s)
        Document.commands_in(line.sub(/\A\w+: /, "")).each { |words| assert_command(block.document, words) }
      end
    end
    each_block("ini", "env") { |block| block.lines.each { |line| assert_match(/\A[A-Z_]+=\S/, line, block.to_s) } }
    each_block("sudoers") do |block|
      block.lines.each { |line| assert_match(%r{\A\w+ ALL=\(root\) NOPASSWD: /\S+}, line, block.to_s) }
    end
  end

  private

  def assert_is_read(block, stage, file)
    File.write(File.join(stage, "srv/blog/Procfile"), "web: highball\nworker: sleep 60\n")
    output, ended = HighballServer.run("config", "systemd", "--config", file, File.join(stage, "srv/blog"))
    assert_predicate ended, :success?, "#{block}: #{output}"
  end

  def assert_serves_all(block, stage, file)
    command = [HighballServer::BINARY, "--config", file, "-b", "127.0.0.1", "-p", "0", "--prestart", "on"]
    # Client certificates need HTTPS, whose files are not there.
    command += ["--tls-client-auth", "off"] if block.text.include?("tls_client_ca")
    server = serve(stage, command: command)
    wait_for("all applications of #{block}") do
      server.full_status["apps"].all? { |app| app["phase"] == "serving" }
    end
    assert_equal block.text.scan("[[app]]").length, server.full_status["apps"].length
  end

  # Users and the Ruby that documents name do not exist on this machine.
  def for_this_machine(block)
    block.text.gsub(/^(user|server_user) = "\w+"/) { "#{Regexp.last_match(1)} = \"#{Etc.getpwuid.name}\"" }
         .sub("/opt/ruby/bin/ruby", RbConfig.ruby).sub(%r{/usr/share(?=/redmine)}, "/srv")
  end

  def assert_keys(block, keys)
    known = KEYS.fetch(block.mark)
    assert_empty keys - known, block.to_s
  end

  def gems_of(block, gemfile)
    path = File.join(folder_with("Gemfile" => gemfile), "Gemfile")
    names = "print Bundler::Dsl.new.tap { |dsl| dsl.eval_gemfile(ARGV[0]) }.dependencies.map(&:name).join(' ')"
    output, ended = Open3.capture2e({ "BUNDLE_GEMFILE" => path }, "ruby", "-r", "bundler", "-e", names, path)
    assert_predicate ended, :success?, "#{block}: #{output}"
    output.split
  end

  def write_certificate(folder)
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = OpenSSL::X509::Certificate.new
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=blog.example.com")
    certificate.public_key = key
    certificate.not_before = Time.now
    certificate.not_after = Time.now + 3600
    certificate.sign(key, "SHA256")
    File.write(File.join(folder, "fullchain.pem"), certificate.to_pem)
    File.write(File.join(folder, "privkey.pem"), key.to_pem)
  end
end
