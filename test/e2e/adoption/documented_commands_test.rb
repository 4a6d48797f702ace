# frozen_string_literal: true

require_relative "../../support/bundled_blog"
require_relative "../../support/documented_code_test_case"
require_relative "../../support/own_gem"

# The documented commands: runnable ones are run, and Highball understands all commands that name it.
class DocumentedCommandsTest < DocumentedCodeTestCase
  RUNS_WITHIN = 60 # seconds

  # A test for each block that runs, so that a failure names it.
  blocks("sh").each do |block|
    name = "#{block.document.tr('/', '_').delete_suffix('.md')}_#{block.line}"
    case block.mark
    when "run" then define_method("test_run_#{name}") { run_block(block) }
    when "live" then define_method("test_live_#{name}") { run_beside_server(block) }
    when "serve" then define_method("test_serve_#{name}") { serve_block(block) }
    end
  end

  def test_commands_are_understood
    Document.for_users.each do |document|
      code = document.blocks.select { |block| block.language == "sh" }.map(&:text) + document.inline_code
      code.flat_map { |piece| Document.commands_in(piece) }.each { |words| assert_command(document.path, words) }
    end
  end

  def test_fields_of_the_status_are_documented
    status = serve(File.join(stage, "srv/blog")).full_status
    of_server, of_app = Document.new("docs/status.md").text.split(/^\| field .*\n.*\n/).drop(1).map do |table|
      table[/\A(?:\|.*\n)+/].lines.flat_map { |row| row.split("|")[1].scan(/`(\w+)`/) }.flatten
    end
    assert_equal status.keys.sort - ["type"], of_server.sort
    assert_equal status["apps"].first.keys.sort, of_app.sort
  end

  private

  # A clone of this tree, with links to everything but the example, which writes files. It has no bin/setup: a build
  # from there would overwrite the one of this tree.
  def tree
    folder_with.tap do |folder|
      (Dir.children(HighballServer::ROOT) - %w[bin examples .git]).each do |name|
        File.symlink(File.join(HighballServer::ROOT, name), File.join(folder, name))
      end
      FileUtils.mkdir_p([File.join(folder, "bin"), File.join(folder, "examples")])
      FileUtils.cp(File.join(HighballServer::ROOT, "bin/highball"), File.join(folder, "bin"))
      FileUtils.mv(copy_of_example("blog"), File.join(folder, "examples/blog"))
    end
  end

  # `highball config` needs a port that is known in advance, and the doctor a free one.
  def variables(stage, port = free_port)
    { "PATH" => "#{stage}/bin:#{ENV.fetch('PATH')}", "PORT" => port.to_s, "BINDING" => "127.0.0.1" }
  end

  def shell(block, folder, stage)
    log = File.join(stage, "output")
    pid = Process.spawn(HighballServer::ENVIRONMENT.merge(variables(stage)), "bash", "-euo", "pipefail", "-c",
                        block.in_folder(stage), chdir: folder, in: File::NULL, %i[out err] => log)
    ended = Process.detach(pid)
    unless ended.join(RUNS_WITHIN)
      HighballServer.kill(pid)
      flunk "#{block} did not end:\n#{File.read(log)}"
    end
    assert_predicate ended.value, :success?, "#{block}:\n#{File.read(log)}"
  end

  def run_block(block)
    stage = self.stage
    shell(block, File.join(stage, "srv/blog"), stage)
  end

  def run_beside_server(block)
    stage = self.stage
    app = File.join(stage, "srv/blog")
    server = serve(app, "--pidfile", File.join(app, "tmp/pids/server.pid"), workers: 2)
    shell(block, app, stage)
    server.wait if block.text.include?("highball stop")
  end

  def serve_block(block)
    stage = self.stage
    folder = block.marks.include?("in=tree") ? tree : File.join(stage, "srv/blog")
    env = variables(stage, 0)
    env = env.merge(bundled(folder)) if block.text.include?("bundle exec")
    server = serve(folder, command: ["bash", "-c", block.in_folder(stage).strip], env: env)
    assert_equal 200, server.get("/", { "Host" => "localhost" }).status, block.to_s
  end

  # Puts Highball into the Gemfile and installs it where these variables say: Bundler looks for commands first in the
  # folder of RubyGems, which may have another Highball.
  def bundled(app)
    File.write(File.join(app, "Gemfile"), "gem 'highball'\n", mode: "a")
    gem = OwnGem.new(folder_with).tap(&:install)
    BundledBlog::ENVIRONMENT.merge(gem.environment)
  end
end
