# frozen_string_literal: true

require_relative "../../support/many_apps_test_case"

# Many applications that all boot when the server starts.
class BootingInTurnsTest < ManyAppsTestCase
  NOTES = <<~RUBY
    note = ->(what) { File.open("../boots", "a") { |file| file.syswrite(what) } }
    note["+"]
    sleep 0.5
    note["-"]
  RUBY

  def test_no_more_boot_at_a_time_than_there_are_processors
    names = ("a".."f").to_a
    folder = folder_with(names.to_h { |name| ["#{name}/config.ru", NOTES + echo(name)] })
    server = serve_on_one_processor(names.map { |name| File.join(folder, name) }, "production")
    names.each { |name| assert_equal name, ask(server, name, "/").first }
    assert_equal 2, most_at_a_time(folder)
    server.signal("USR1")
    wait_for("all to be restarted", within: HighballServer::SERVES_WITHIN) { generations(server).all?(2) }
    assert_equal 2, most_at_a_time(folder)
  end

  def test_those_that_hang_do_not_hold_up_the_others_for_long
    folder = folder_with("a/config.ru" => "sleep", "b/config.ru" => "sleep", "c/config.ru" => echo("c"))
    server = serve_on_one_processor(%w[a b c].map { |name| File.join(folder, name) }, "development")
    hanging = %w[a b].map { |host| server.connect.tap { |one| one.send_request("GET", "/", { "Host" => host }) } }
    wait_for("both to boot") { %w[a b].all? { |name| app(server, name)["mold"] } }
    assert_equal "c", ask(server, "c", "/").first
  ensure
    hanging&.each(&:close)
  end

  private

  # Two at a time is the least.
  def serve_on_one_processor(places, environment)
    processor = File.read("/proc/self/status")[/Cpus_allowed_list:\s*(\d+)/, 1]
    serve_many(*places, environment: environment, through: ["taskset", "-c", processor])
  end

  def most_at_a_time(folder)
    booting = 0
    File.read(File.join(folder, "boots")).each_char.map { |sign| booting += sign == "+" ? 1 : -1 }.max
  end
end
