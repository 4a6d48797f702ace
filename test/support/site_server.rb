# frozen_string_literal: true

require_relative "deadline"
require_relative "free_port"

# Serves the built site over HTTP while a block runs, as its search needs it.
module SiteServer
  module_function

  # Calls the block with its address.
  def run(folder)
    port = FreePort.free_port
    command = ["python3", "-m", "http.server", port.to_s, "--bind", "127.0.0.1"]
    server = Process.spawn(*command, chdir: folder, %i[out err] => File::NULL)
    Deadline.wait("the site's server") { FreePort.taken?(port) }
    yield "http://127.0.0.1:#{port}"
  ensure
    Process.kill(:TERM, server).then { Process.wait(server) } if server
  end

  # Shows a page as to a browser that comes for the first time: the theme looks once whether it is to be dark.
  def visit(browser, url)
    browser.visit url
    browser.driver.execute_script("localStorage.clear(); sessionStorage.clear()")
    browser.driver.navigate.refresh
    browser.find "h1"
  end
end
