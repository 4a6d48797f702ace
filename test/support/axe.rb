# frozen_string_literal: true

# Checks what a browser shows for accessibility, by axe-core. `bin/test packages` installs the version in
# test/runner/npm/package.json.
module Axe
  CACHE = ENV.fetch("HIGHBALL_TEST_CACHE", "/var/cache/highball")
  SOURCE = File.join(CACHE, "npm/node_modules/axe-core/axe.min.js")
  # The WCAG's levels A and AA, and what axe calls best practices.
  RUN = <<~JAVASCRIPT
    const done = arguments[arguments.length - 1];
    axe.run(document, { resultTypes: ["violations"] }).then(
      (results) => done(results.violations.map((one) => [one.id, one.help, one.nodes.map((node) => node.html + "\\n    " + node.failureSummary)])),
      (error) => done([["axe", String(error), []]]));
  JAVASCRIPT

  module_function

  def installed? = File.exist?(SOURCE)

  # What is wrong with the page that this driver shows, as text; empty: nothing.
  def violations(driver)
    driver.manage.timeouts.script = 60
    driver.execute_script(File.read(SOURCE, encoding: "UTF-8"))
    driver.execute_async_script(RUN).map do |id, help, nodes|
      "#{id}: #{help}\n  #{nodes.first(5).join("\n  ")}"
    end.join("\n")
  end
end
