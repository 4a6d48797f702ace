# frozen_string_literal: true

require_relative "web_server"

# For tests of Highball behind other web servers, which end with the test. Their logs follow a failure.
module BehindWebServers
  def setup
    super
    @web_servers = []
  end

  def teardown
    @web_servers.each do |server|
      warn "\n--- log of the web server in #{name}\n#{server.log}---" unless passed? || skipped?
      server.finish
    end
    super
  end

  private

  # A web server with this configuration, once it listens.
  def start_web_server(command, site)
    needs(command)
    WebServer.start(command, site).tap { |web_server| @web_servers << web_server }
  end

  # The application of tests, in a folder that configurations can name: this tree may lie anywhere.
  def probe
    @probe ||= folder_with.then do |folder|
      FileUtils.cp_r(File.join(HighballServer::APPS, "probe"), folder)
      File.join(folder, "probe")
    end
  end

  # The configuration that `highball config` prints.
  def printed_for(program, *options)
    highball("config", program, *options)
  end
end
