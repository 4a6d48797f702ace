# frozen_string_literal: true

require "cgi"
require "rack"
require_relative "../../support/e2e_test"

# Requests that get an error instead of an answer: what developers see, what visitors see, and what both must not see.
class ErrorPagesTest < E2ETest
  HTML = { "Accept" => "text/html", "Host" => "localhost" }.freeze
  # Clients that are on other machines, or may be.
  VISITORS = [{ "Host" => "evil.example" }, { "X-Forwarded-For" => "192.0.2.1" }, { "Forwarded" => "for=192.0.2.1" },
              { "Via" => "1.1 tunnel" }].freeze
  # Requests of visitors that fail, and what they get.
  FAILURES = { "/order" => 500, "/exit" => 502 }.freeze
  SHOP = <<~RUBY
    class Shop
      PRICES = { tea: 3 }.freeze

      def call(env)
        case env["PATH_INFO"]
        when "/price" then price(Rack::Utils.parse_query(env["QUERY_STRING"])["q"])
        when "/order" then order
        when "/exit" then exit!(3)
        when "/kill" then Process.kill(:KILL, Process.pid).then { sleep }
        when "/slow" then wait_for_the_kettle
        when "/thread" then Thread.exit
        when "/head" then [200, { "content-length" => "none" }, ["tea"]]
        when "/late" then [200, {}, Enumerator.new { |body| raise "spilt" }]
        when "/cut" then [200, {}, Enumerator.new { |body| body << "a cup" << raise("spilt: " + ENV["API_TOKEN"].to_s) }]
        when "/say" then raise env["rack.input"].read
        else [200, {}, ["shop"]]
        end
      end

      def price(name)
        [200, {}, [PRICES.fetch(name.to_sym)]]
      end

      def order
        price("milk")
      rescue KeyError
        raise ArgumentError, "no such drink"
      end

      def wait_for_the_kettle
        warn "waiting"
        sleep
      end
    end
  RUBY
  PRICE, KETTLE = ["[200, {}, [PRICES.fetch(name.to_sym)]]", "sleep"].map do |code|
    SHOP.lines.index { |line| line.strip == code } + 1
  end

  # --- exceptions

  def test_an_exception_has_a_page_with_its_source
    page = page_of("/price?q=milk", 500)
    assert_includes page, "KeyError: key not found: :milk"
    assert_includes page, "<h2>shop.rb<span>:#{PRICE}</span>"
    assert_includes page, "<code class=\"here\"><b>#{PRICE}</b>    [<i class=\"n\">200</i>, {}, [<i class=\"t\">PRICES"
    refute_includes page, "What to do", "it would say nothing"
    assert_includes page, "GET /price?q=milk"
    assert_match(%r{<dt>q</dt><dd>milk</dd>}, page)
  end

  def test_causes_of_an_exception_are_shown
    page = page_of("/order", 500)
    assert_includes page, "ArgumentError: no such drink"
    assert_includes page, "Caused by KeyError: key not found: :milk"
  end

  # The caller of `price` and the caller that made the application; between them are calls of gems, which are folded.
  def test_calls_of_the_application_are_open
    server = shop(env: { "HIGHBALL_EDITOR" => "code --wait" },
                  files: { "config.ru" => "require_relative 'shop'\n\nuse Rack::Runtime\nshop = Shop.new\n" \
                                          "run lambda { |env|\n  shop.call(env)\n}\n" })
    page = text_of(server.get("/price?q=milk", HTML))
    open_calls = page[%r{<section class="calls">.*?</section>}m].gsub(%r{<details>.*?</details>}m, "")
    folder = File.realpath(@folder)
    { "shop.rb" => PRICE, "config.ru" => 6 }.each do |file, line|
      assert_includes open_calls, "<a href=\"vscode://file#{folder}/#{file}:#{line}\">#{file}<span>:#{line}</span></a>"
    end
    assert_match(%r{<summary>\d+ calls? in [^<]*rack[^<]*</summary>}, page)
    refute_match(/runtime\.rb/, open_calls)
  end

  def test_no_editor_no_links
    page = text_of(shop(env: { "EDITOR" => "vi", "VISUAL" => nil, "HIGHBALL_EDITOR" => nil }).get("/order", HTML))
    refute_includes page, "<a href"
    assert_includes page, "HIGHBALL_EDITOR=code"
  end

  def test_an_application_with_a_console_of_its_own
    console = { "config.ru" => "module WebConsole\n  VERSION = '4'\nend\nrequire_relative 'shop'\nrun Shop.new\n" }
    assert_includes text_of(shop(files: console).get("/order", HTML)), "web-console adds its console to Rails'"
    refute_includes page_of("/order", 500), "web-console"
  end

  def test_a_body_that_fails_before_its_first_byte
    assert_includes page_of("/late", 500), "RuntimeError: spilt"
  end

  def test_a_started_answer_is_cut_off_and_the_log_shows_why
    server = shop(env: { "API_TOKEN" => "hunter2-hunter2" })
    assert_raises(EOFError, Errno::ECONNRESET) { server.get("/cut", HTML) }
    wait_for("the log") { server.log.include?("spilt: [masked]") }
    refute_includes server.log, "hunter2"
  end

  def test_a_known_cause_comes_with_its_remedy
    app = folder_with("config.ru" => <<~RUBY)
      module ActiveRecord
        class PendingMigrationError < StandardError; end
      end
      run ->(env) { env["PATH_INFO"] == "/" ? [200, {}, []] : raise(ActiveRecord::PendingMigrationError, "1 is pending") }
    RUBY
    page = serve(app, environment: "development").get("/books", HTML).body
    assert_includes page, "pending migrations"
    assert_includes page, "Run the migrations."
    assert_includes page, "bundle exec rake db:migrate"
  end

  def test_programs_get_text_or_json_and_the_connection_is_kept
    shop.connect do |connection|
      text = connection.get("/order", { "Host" => "localhost" })
      assert_match %r{\Atext/plain}, text["content-type"]
      assert_match(/ArgumentError: no such drink.*caused by KeyError.*shop\.rb:#{PRICE}/m, text.body)
      json = connection.get("/order", { "Host" => "localhost", "Accept" => "application/json" })
      assert_equal "application/json", json["content-type"]
      diagnosis = JSON.parse(json.body)
      assert_equal ["exception", "GET /order", "ArgumentError"],
                   [diagnosis["cause"], diagnosis.dig("request", "line"), diagnosis.dig("error", "class")]
      head = connection.request("HEAD", "/order", HTML)
      assert_equal [500, ""], [head.status, head.body.to_s]
      assert_equal 200, connection.get("/", HTML).status
    end
  end

  def test_a_page_does_not_repeat_its_request_and_needs_nothing_from_elsewhere
    answer = shop.get("/order", HTML)
    assert_match(/default-src 'none'/, answer["content-security-policy"])
    assert_equal "no-store", answer["cache-control"]
    refute_match(/location\.reload|http-equiv="refresh"|(?:src|href)=/, answer.body)
  end

  def test_error_pages_of_a_framework_are_left_alone
    app = folder_with("app.rb" => <<~RUBY)
      require "sinatra"
      get("/") { "well" }
      get("/raise") { raise "look here" }
    RUBY
    server = serve(app, environment: "development")
    answer = server.get("/raise", HTML)
    assert_equal 500, answer.status
    assert_includes answer.body, "Sinatra"
    refute answer["highball-diagnosis"]
  end

  # --- 502, 503, 504

  def test_a_worker_that_ends_itself
    page = page_of("/exit", 502)
    assert_match(/worker \d+ \(process \d+\) ended during this request: exited with code 3/, page)
    assert_includes page, "this was the second try"
    assert_includes page, "`exit!`"
  end

  def test_a_worker_that_is_killed
    server = shop
    page = text_of(server.request("POST", "/kill", HTML, "x", within: 30))
    assert_match(/worker 1 \(process \d+\) ended .*killed by SIGKILL/, page)
    refute_includes page, "second try"
    assert_includes page, "journalctl"
    assert_includes server.log, "the application's process ended before it answered; the client gets 502"
    assert_match(/worker 1 died: killed by SIGKILL/, server.status["last_failure"])
  end

  def test_answers_that_cannot_be_sent
    assert_includes page_of("/head", 502), "the application's answer has a malformed Content-Length"
    assert_includes page_of("/thread", 502), "was given up before it had begun"
  end

  def test_an_answer_that_does_not_come_in_time
    server = shop("--request-timeout", "500ms", "--drain-timeout", "1s")
    page = text_of(server.get("/slow", HTML, within: 30))
    assert_match(/worker 1 has not begun to answer within 500ms \(request_timeout\)/, page)
    assert_includes page, "<h2>shop.rb<span>:#{KETTLE}</span>"
    assert_match(/Backtrace of worker 1 thread \d/, page)
    assert_includes page, "--request-timeout"
    assert_match(%r{took too long to answer; the client gets 504.*request="GET /slow".*after=500ms}, server.log)
  end

  def test_a_queue_that_is_full
    server = shop("--max-queue", "1", "--drain-timeout", "1s", threads: 1)
    waiting = Array.new(2) { server.connect.tap { |connection| connection.send_request("GET", "/slow", HTML) } }
    wait_for("a full queue") { server.status["queue"] == 1 }
    answer = server.get("/", HTML)
    page = text_of(answer)
    assert_equal 503, answer.status
    assert answer["retry-after"]
    assert_match(/the queue is full: 1 request is waiting; the oldest has waited for [\d.]+ s/, page)
    assert_includes page, "At work: 1 × 1 (workers × threads)."
    assert_includes page, "worker 1 is handling: GET /slow"
    assert_includes page, "--max-queue"
    wait_for("the log") { server.log.include?("the request queue is full; clients get 503") }
  ensure
    waiting&.each(&:close)
  end

  # --- who sees what

  def test_visitors_see_nothing_of_it
    server = shop
    failures = VISITORS.product([["/order", 500]]) << [VISITORS.first, ["/exit", 502]]
    failures.each do |fields, (path, status)|
      answer = server.get(path, HTML.merge(fields), within: 30)
      assert_match(/\A#{status} [\w ]+: the application('s process)? \w[^<]*\n\z/, answer.body)
      refute_match(/drink|shop|worker/, answer.body)
      refute answer["highball-diagnosis"]
    end
  end

  def test_visitors_see_nothing_of_a_request_that_takes_too_long
    answer = shop("--request-timeout", "500ms", "--drain-timeout", "1s").get("/slow", HTML.merge(VISITORS.first),
                                                                             within: 30)
    assert_equal "504 Gateway Timeout: the application took too long to answer\n", answer.body
  end

  def test_in_production_no_client_sees_the_error
    server = shop(environment: "production")
    FAILURES.each do |path, status|
      answer = server.get(path, HTML, within: 30)
      assert_match(/\A#{status} /, answer.body)
      refute_match(/drink|shop\.rb|worker/, answer.body)
    end
    wait_for("the log") { server.log.match?(/ArgumentError: no such drink.*KeyError.*shop\.rb:#{PRICE}/m) }
  end

  def test_the_application_may_have_pages_for_its_visitors
    pages = FAILURES.values.to_h { |status| ["public/#{status}.html", "<p>Sorry: #{status}"] }
    server = shop(files: pages, environment: "production")
    FAILURES.each do |path, status|
      answer = server.get(path, within: 30)
      assert_equal [status, "<p>Sorry: #{status}"], [answer.status, answer.body]
      assert_match %r{\Atext/html}, answer["content-type"]
    end
    assert_equal "", server.request("HEAD", "/order").body.to_s
  end

  def test_everything_is_escaped
    evil = "<script>alert(1)</script>\"'"
    answer = shop.request("POST", "/say?<b>=<i>", HTML.merge("X-Evil" => evil), evil)
    assert_equal 500, answer.status
    refute_match(/<script>|<i>|<b>=/, answer.body)
    assert_includes answer.body, "&lt;script&gt;alert(1)"
  end

  private

  def shop(*options, files: {}, **settings)
    @folder = folder_with({ "config.ru" => "require_relative 'shop'\nrun Shop.new\n", "shop.rb" => SHOP }.merge(files))
    serve(@folder, *options, **{ environment: "development" }.merge(settings))
  end

  def page_of(path, status)
    answer = shop.get(path, HTML, within: 30)
    assert_equal status, answer.status
    assert_match %r{\Atext/html}, answer["content-type"]
    text_of(answer)
  end

  def text_of(answer) = CGI.unescapeHTML(answer.body.dup.force_encoding("UTF-8"))
end
