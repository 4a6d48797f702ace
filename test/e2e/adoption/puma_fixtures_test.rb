# frozen_string_literal: true

require_relative "../../support/e2e_test"
require_relative "../../support/puma_fixtures"

# Puma configurations as public applications have them: each starts, and what is not carried out is reported with file
# and line. test/puma/expected.md lists what Highball makes of each statement.
class PumaFixturesTest < E2ETest
  EXPECTED = File.read(File.join(PumaFixtures::FOLDER, "expected.md"))

  def setup
    super
    skip "where root starts the server, these files have no options of the server" if OwnProcesses.spawner?
  end

  PumaFixtures::NAMES.each do |name|
    define_method("test_#{name}") do
      folder = folder_with(PumaFixtures.app(name))
      server = serve(folder, command: command(folder), env: PumaFixtures.environment(name), preface: preface(name))
      assert_equal wanted(name, "workers") || server.status["workers_wanted"], server.status["workers_wanted"]
      assert_match(%r{config/puma\.rb is read, as there is no highball\.toml}, server.log)
      assert_equal reported(name), places_in(server.log), server.log
    end
  end

  private

  # Where to listen is given, as ports are free ones: everything else is the file's.
  def command(folder) = [HighballServer::BINARY, "serve", "-b", "127.0.0.1", "-p", "0", folder]

  # The file may have each connection begin with a header of the PROXY protocol.
  def preface(name) = section(name).include?("proxy_protocol = v1") ? "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" : ""

  def section(name) = EXPECTED[/^## #{name}\n.*?(?=^## |\z)/m]

  # The number that the file gives an option; nil: none, or as many as there are CPUs.
  def wanted(name, option)
    text = section(name)[/option `#{option} = (\d+)`/, 1] and [text.to_i, 1].max
  end

  def reported(name)
    section(name).scan(/^\| (\w+\.rb:\d+) \| \*\*reported/).flatten.map do |place|
      place.sub(":0", ":")
    end.sort
  end

  def places_in(log) = log.scan(%r{WARN  \S*/(\w+\.rb:\d+): `}).flatten.sort
end
