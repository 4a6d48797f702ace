# frozen_string_literal: true

# marks: long

require_relative "../../support/browser"
require_relative "../../support/changed_blog"
require_relative "../../support/e2e_test"
require_relative "../../support/replaced_workers"

# Turbo Streams in Chromium, with the JavaScript of turbo-rails and Action Cable as they are (`bin/test packages`
# installs them). Debian doesn't have the gem turbo-rails: its channel is this test's.
class TurboTest < E2ETest
  include ChangedBlog
  include ReplacedWorkers

  CACHE = ENV.fetch("HIGHBALL_TEST_CACHE", "/var/cache/highball")
  SCRIPT = File.join(CACHE, "npm/node_modules/@hotwired/turbo-rails/app/assets/javascripts/turbo.js")

  CODE = <<~'RUBY'
    module Turbo
      NAMES = ActiveSupport::MessageVerifier.new("a secret", serializer: JSON)

      class StreamsChannel < ActionCable::Channel::Base
        def subscribed
          name = NAMES.verified(params[:signed_stream_name])
          name ? stream_from(name) : reject
        end
      end
    end

    class LiveController < ApplicationController
      skip_forgery_protection

      def show
        render inline: <<~ERB, layout: "application"
          <% content_for :head, tag.script(src: "/turbo.js", type: "module") %>
          <%= content_tag("turbo-cable-stream-source", "", channel: "Turbo::StreamsChannel",
                          "signed-stream-name": Turbo::NAMES.generate("live")) %>
          <ol id="news"></ol>
          <script>
            const source = document.querySelector("turbo-cable-stream-source");
            window.cuts = 0;
            new MutationObserver(() => window.cuts += source.hasAttribute("connected") ? 0 : 1)
              .observe(source, { attributes: true, attributeFilter: ["connected"] });
          </script>
        ERB
      end

      def create
        ActionCable.server.broadcast("live", <<~HTML)
          <turbo-stream action="append" target="news"><template><li>#{params[:text]}</li></template></turbo-stream>
        HTML
        head :no_content
      end
    end
  RUBY

  def setup
    super
    skip "turbo-rails is not installed: bin/test packages" unless File.exist?(SCRIPT)
    @blog = blog_with(CODE, "  get 'live', to: 'live#show'\n  post 'live', to: 'live#create'\n")
    FileUtils.cp(SCRIPT, File.join(@blog, "public"))
    File.write(File.join(@blog, "config/cable.yml"), "production:\n  adapter: highball\n")
    @server = serve(@blog, workers: 2)
    @sent = []
  end

  def test_a_page_gets_all_broadcasts_over_one_web_socket
    Browser.open do |browser|
      browser.visit @server.url("/live")
      wait_for("the subscription") { browser.has?("turbo-cable-stream-source[connected]") }
      say_and_see("first", browser)
      say_and_see("é <b>bold</b>", browser, shown: "é bold")
      replace_workers
      say_and_see("after restart, refork and deaths", browser)
      highball("upgrade", *@server.which, within: 60)
      say_and_see("after a hot restart", browser)
      assert_equal 0, browser.driver.execute_script("return window.cuts")
      assert_equal 1, @server.status.dig("hub", "cable_clients")
    end
  end

  private

  def say_and_see(text, browser, shown: text)
    query = URI.encode_www_form(text: text)
    assert_equal 204, @server.request("POST", "/live?#{query}").status
    @sent << shown
    list = -> { browser.driver.find_elements(css: "#news li").map(&:text) }
    wait_for("#{@sent} instead of #{list.call}") { list.call == @sent }
  end
end
