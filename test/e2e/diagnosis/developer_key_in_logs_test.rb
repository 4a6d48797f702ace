# frozen_string_literal: true

require_relative "../../support/tls_test_case"
require_relative "../../support/holds_key"
require_relative "../../support/http2_client"
require_relative "../../support/fastcgi_client"
require_relative "../../support/lsapi_client"

# The key of the developer's link is in no log and reaches no application, whatever answers the request that has it.
class DeveloperKeyInLogsTest < TlsTestCase
  include HoldsKey

  LOGS = %w[combined json].push('{target}|"{referer}" {agent} {host} {user}').freeze
  # It logs all that it gets, as applications do.
  APP = <<~RUBY
    run lambda { |env|
      $stderr.puts env.select { |_, value| value.is_a?(String) }.inspect
      raise "no" if env["PATH_INFO"] == "/raise"
      [200, { "cache-control" => "public, max-age=60" }, [env.values_at("PATH_INFO", "HTTP_REFERER").inspect]]
    }
  RUBY
  FILES = { "config.ru" => APP, "public/a.txt" => "a" }.freeze
  PATHS = ["/", "/a.txt", "/raise", "/health", "/absent?a=b", "/cached"].freeze
  LIMITED = ["--max-target", "300B", "--max-body", "10B"].freeze
  GATEWAYS = { "fastcgi" => FastcgiClient, "lsapi" => LsapiClient }.freeze
  PROTOCOLS = ["--http2-cleartext", "on", *GATEWAYS.keys.flat_map { |name| ["-b", "#{name}://127.0.0.1:0"] }].freeze
  # Requests that are refused before they are routed; KEY stands for the key.
  REFUSED = ["GET /?highball=KEY HTTP/1.1\r\n\r\n", "GET /?highball=KEY HTTP/3.0\r\nHost: a\r\n\r\n",
             "CONNECT /?highball=KEY HTTP/1.1\r\nHost: a\r\n\r\n", "GET /?highball=KEY\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
             "GET /?highball=KEY#{'x' * 400} HTTP/1.1\r\nHost: a\r\n\r\n",
             "GET /?highball=KEY HTTP/1.1\r\nHost: a@b\r\n\r\n",
             "POST /?highball=KEY HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n",
             "POST /x HTTP/1.1\r\nHost: a\r\nReferer: /?highball=KEY\r\nContent-Length: 99\r\n\r\n",
             "TRACE /?highball=KEY HTTP/1.1\r\nHost: a\r\n\r\n"].freeze

  LOGS.each_with_index do |format, index|
    define_method("test_whatever_answers_with_log_format_#{index}") do
      begin_serving(format, *PROTOCOLS)
      each_target { |target, fields| ask_everywhere(target, fields) }
      refused
      assert_in_no_log
    end
  end

  def test_where_all_are_sent_to_https
    begin_serving("json", "--redirect-https", "on")
    each_target do |target, fields|
      answer = plain(@server.port, "GET", target, fields)
      next assert_health(answer, target) if target.start_with?("/health")

      assert_equal 308, answer.status
      assert answer["location"].start_with?("https://localhost/"), answer["location"]
    end
    assert_in_no_log
  end

  def test_where_a_password_is_asked_for
    users = File.join(folder_with, "users")
    File.write(users, "ann:$apr1$x$WNfQAgnQ4fTTjAkSgfXRB0\n")
    begin_serving("combined", "--basic-auth", users)
    each_target { |target, fields| plain(@server.port, "GET", target, fields.merge("Host" => "test")) }
    assert_in_no_log
  end

  # A browser that leaves a page which was opened with the key names it.
  def test_a_referer_with_the_key_reaches_no_application
    begin_serving("combined")
    forms_of(@key).each do |form|
      answer = plain(@server.port, "GET", "/x", { "Referer" => "http://localhost/?highball=#{form}" })
      assert_equal '["/x", nil]', answer.body
    end
    answer = plain(@server.port, "GET", "/x", { "Referer" => "http://localhost/?a" })
    assert_equal '["/x", "http://localhost/?a"]', answer.body
    assert_in_no_log
  end

  private

  def begin_serving(format, *options)
    @log = File.join(folder_with, "access.log")
    settings = ["--access-log", @log, "--access-log-format", format, "--health-path", "/health", *LIMITED]
    @server = serve_tls(folder_with(FILES), *settings, *options, environment: "development")
    @key = @server.link_key
    assert @key, @server.log
    @printed = count_key(@server.log, @key)
  end

  # Every target with the key in every form and place, and fields that have it.
  def each_target
    forms_of(@key).each do |form|
      fields = { "Host" => "localhost", "Referer" => "http://localhost/?highball=#{form}" }
      PATHS.each do |path|
        with = path.include?("?") ? "&" : "?"
        yield "#{path}#{with}highball=#{form}", fields
        yield path, fields
      end
      yield "/?to=%2F%3Fhighball%3D#{form}", fields
      yield "/%3Fhighball=#{form}", fields.merge("User-Agent" => form, "X-Original-URI" => "/?highball=#{form}")
    end
  end

  def plain(port, method, target, fields = {}, *body)
    fields = { "Host" => "localhost" }.merge(fields)
    HttpConnection.tcp(port).use { |client| client.request(method, target, fields, *body) }
  end

  # It is answered by HTTP, too; with a key in its target, as any link is.
  def assert_health(answer, target)
    return assert_equal 200, answer.status unless target.include?("highball=")

    assert_equal [303, "/health"], [answer.status, answer["location"]]
  end

  def ask_everywhere(target, fields)
    answer = plain(@server.port, "GET", target, fields)
    assert_includes [200, 303, 404, 500, 503], answer.status
    refute_includes answer.body, @key
    assert_equal 0, count_key(answer["location"].to_s, @key)
    plain(tls_port(@server), "GET", target, fields) # the way back to HTTPS
    connect_tls(tls_port(@server)) { |client| client.get(target, fields) }
    Http2Client.tcp(@server.port).greet.use do |client|
      client.send_request(1, "GET", target, fields.except("Host").transform_keys(&:downcase), authority: "localhost")
      refute_nil client.answer(1).status
    end
    GATEWAYS.each { |name, client| client.tcp(gateway_port(name)).use { |one| one.get(target, fields) } }
  end

  def gateway_port(name)
    @server.status["binds"].filter_map { |bind| bind[%r{\A#{name}://127\.0\.0\.1:(\d+)\z}, 1] }.first.to_i
  end

  def refused
    forms_of(@key).product(REFUSED) do |form, bytes|
      HttpConnection.tcp(@server.port).use { |client| refute_nil client.write(bytes.sub("KEY", form)).read_response }
    end
  end

  def assert_in_no_log
    plain(@server.port, "GET", "/the-end")
    wait_for("the last line") { File.read(@log).include?("the-end") }
    text = File.read(@log)
    assert_equal 0, count_key(text, @key), text
    assert_equal @printed, count_key(@server.log, @key), @server.log
    status = @server.full_status
    status["apps"].each { |app| app.delete("browser_link") }
    assert_equal 0, count_key(JSON.generate(status), @key)
  end
end
