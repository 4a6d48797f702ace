# frozen_string_literal: true

require_relative "../../support/e2e_test"

# Names that are nearly those of something that there is: the answer says what was probably meant.
class MisspeltNamesTest < E2ETest
  APP = "run ->(_env) { [200, {}, ['ok']] }\n"
  ADDRESS = %w[-b 127.0.0.1 -p 0].freeze

  def setup
    super
    skip "the server is another user than the application's owner" if ENV["HIGHBALL_SERVER_USER"]
  end

  def test_environments_of_rails
    rails = { "config.ru" => APP, "config/application.rb" => "", "config/environments/production.rb" => "",
              "config/environments/qa.rb" => "" }
    folder = folder_with(rails)
    assert_refused(%r{no config/environments/prodution\.rb; did you mean production\?}, *ADDRESS, "-e", "prodution",
                   folder)
    { "RAILS_ENV" => "prodution", "RACK_ENV" => "productoin" }.each do |variable, value|
      assert_refused(/did you mean production/, *ADDRESS, folder, env: { variable => value })
    end
    assert_refused(/did you mean production/, *ADDRESS,
                   folder_with(rails.merge("highball.toml" => "environment = 'prodction'\n")))
    assert_equal 200, serve(folder, environment: "qa").get("/").status
    assert_equal 200, serve(folder_with("config.ru" => APP), environment: "prodution").get("/").status
  end

  def test_an_environment_of_rails_that_has_no_file_and_is_near_none
    folder = folder_with("config.ru" => APP, "config/application.rb" => "", "config/environments/production.rb" => "")
    server = serve(folder, environment: "load_test")
    missing = %r{there is no config/environments/load_test\.rb, only production}
    assert_match(/WARN .*#{missing}/, server.log)
    output, = HighballServer.run("doctor", "-e", "load_test", "-p", "0", folder, within: 60)
    assert_match(/^warning +environment: #{missing}\n +what to do: /, output)
  end

  def test_applications_in_commands
    serve(folder_with("config.ru" => APP), "--name", "shop")
    output = highball_fails("restart", "shpo")
    assert_match(/the application shpo; did you mean shop\?/, output)
  end

  private

  def assert_refused(message, *arguments, env: {})
    output = highball_fails("serve", *arguments, env: env)
    assert_match message, output
  end
end
