# frozen_string_literal: true

require_relative "../../support/acme_test_case"

# Certificates for names that the configuration does not have: obtained when the first client asks for one.
class NamesOnDemandTest < AcmeTestCase
  # Says yes to names that begin with "shop", and writes down what it is asked.
  ASKED = <<~'RUBY'
    use(Class.new do
      def initialize(app) = @app = app

      def call(env)
        return @app.call(env) unless env["PATH_INFO"] == "/allowed"
        return [404, {}, []] unless env["highball.probe"] # the world need not know

        name = Rack::Request.new(env).params["domain"]
        line = [name, env["HTTP_HOST"], env["rack.url_scheme"], env["QUERY_STRING"]].join(" ")
        File.write(File.join(__dir__, "asked"), "#{line}\n", mode: "a")
        sleep 0.1 until !name.start_with?("slow") || File.exist?(File.join(__dir__, "go on"))
        raise "no database" if name.start_with?("broken")
        [name.start_with?("shop") ? 200 : 404, {}, []]
      end
    end)
  RUBY

  def test_a_listed_name_is_obtained_when_a_client_asks_for_it
    @pebble.start
    server = serve_on_demand("--domain-on-demand", "*.shops.test")
    assert_equal "https one.shops.test:#{@https}", https_body("one.shops.test")
    assert_equal 1, issued.length
    ["shops.test", "a.b.shops.test", "other.test"].each { |name| assert_nil https_body(name), name }
    assert_equal 1, issued.length
    domain = server.status["tls"]["domains"].first
    assert_equal ["one.shops.test", 0, nil], domain.values_at("name", "failures", "problem")
  end

  def test_the_application_says_for_which_names
    @pebble.start
    server = serve_on_demand("--domain-ask", "/allowed?by=highball")
    assert_equal "https shop.test:#{@https}", https_body("shop.test")
    assert_nil https_body("other.test")
    2.times { assert_equal "https shop.test:#{@https}", https_body("Shop.test")&.downcase }
    assert_nil https_body("other.test")
    assert_equal ["shop.test shop.test https by=highball&domain=shop.test",
                  "other.test other.test https by=highball&domain=other.test"], asked
    assert_equal(["shop.test"], server.status["tls"]["domains"].map { |domain| domain["name"] })
    answer = HttpConnection.tcp(@plain).use { |client| client.get("/allowed?domain=shop.test") }
    assert_equal 404, answer.status
  end

  def test_what_was_obtained_is_served_after_a_start_without_the_authority
    @pebble.start
    serve_on_demand("--domain-ask", "/allowed")
    assert https_body("shop.test")
    root = @pebble.root
    stop_servers
    @pebble.stop
    serve_on_demand("--domain-on-demand", "shop.test")
    assert_equal "https shop.test:#{@https}", https_body("shop.test", root)
    stop_servers
    server = serve_on_demand("--domain-on-demand", "another.test")
    assert_nil https_body("shop.test", root), "nobody allows it any more\n#{server.log}"
  end

  def test_renewal_when_clients_come
    @pebble = AcmeAuthority.new(@authority_folder, http_port: @http, valid_for: VALID_FOR).start
    serve_on_demand("--domain-ask", "/allowed")
    assert https_body("shop.test")
    first = serial_for(@https, "shop.test")
    wait_for("a renewal", within: 60) { serial_for(@https, "shop.test") != first }
    assert_operator asked.length, :>=, 2, "it is asked again"
  end

  def test_names_of_attackers
    @pebble.start
    server = serve_on_demand("--domain-ask", "/allowed")
    assert https_body("shop.test")
    ["localhost", "a_b.test", "-a.test", "127.0.0.1", "a.123"].each { |name| assert_nil https_body(name), name }
    assert_equal 1, asked.length
    names = Array.new(200) { |number| "name#{number}.test" }
    names.each_slice(20).map { |some| Thread.new { some.each { |name| https_body(name) } } }.each(&:join)
    assert_operator asked.length, :<, 200
    assert_equal "https shop.test:#{@https}", https_body("shop.test")
    assert_equal(["shop.test"], server.status["tls"]["domains"].map { |domain| domain["name"] })
    assert_equal 1, issued.length
  end

  def test_an_application_that_does_not_answer
    @pebble.start
    server = serve_on_demand("--domain-ask", "/allowed", threads: 2)
    assert https_body("shop.test")
    waiting = tls_hello("slow.test")
    wait_for("the question") { asked.any? { |line| line.start_with?("slow") } }
    assert_equal "https shop.test:#{@https}", https_body("shop.test"), "others are served"
    assert_nil https_body("broken.test")
    wait_for("a line in the log") { server.log.include?("the application does not say") }
    assert_match(/no database/, server.log)
  ensure
    File.write(File.join(@app, "go on"), "")
    waiting&.close
  end

  def test_an_authority_that_is_down
    server = serve_on_demand("--domain-ask", "/allowed")
    assert_nil https_body("shop.test", OpenSSL::X509::Certificate.new(File.read(@pebble.vouching_file)))
    domain = wait_for("a problem") { server.status["tls"]["domains"].find { |one| one["problem"] } }
    assert_match(/cannot reach/, domain["problem"])
    2.times { https_body("shop.test", OpenSSL::X509::Certificate.new(File.read(@pebble.vouching_file))) }
    assert_equal 1, asked.length, "an answer counts for a while"
    assert_equal 1, server.log.scan("no certificate obtained").length
  end

  private

  def serve_on_demand(*options, **settings)
    @plain = free_port
    @app = folder_with("config.ru" => ASKED + APP)
    serve(@app, "--bind", "tls://127.0.0.1:#{@https}", "--bind", "127.0.0.1:#{@http}",
          "--bind", "127.0.0.1:#{@plain}", *acme_options, *options, **settings)
  end

  def asked = File.exist?(File.join(@app, "asked")) ? File.readlines(File.join(@app, "asked"), chomp: true) : []

  def issued = Dir[File.join(@state, "certificates", "*", "*.pem")]

  # A client that has begun a handshake for this name, and waits.
  def tls_hello(name)
    Thread.new { https_body(name) }.then { |thread| Struct.new(:thread) { def close = thread.kill }.new(thread) }
  end
end
