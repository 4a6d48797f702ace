# frozen_string_literal: true

require_relative "../../support/gateway_test_case"
require_relative "../../support/sent_files_test_case"

# What clients and applications may try with files that applications send.
class HostileSentFilesTest < SentFilesTestCase
  def test_files_elsewhere_are_refused
    make_traps
    serve_files
    outside = "#{@folder}/secret.txt"
    of_paths = [outside, "/etc/passwd", "/proc/self/environ", "#{@folder}/storage/../secret.txt",
                "#{@folder}/storage/sub/../a.txt", "#{@folder}/storage-evil/c.txt", "#{@folder}/storage/to-secret",
                "#{@folder}/storage/to-root/etc/passwd", "#{@folder}/storage/to-evil/c.txt",
                "#{@folder}/storage/to-fd/0", "storage/a.txt", "~/secret.txt", "", "/", "#{@folder}/storage",
                "#{@folder}/storage/", "#{@folder}/storage/sub", "#{@folder}/storage/pipe", "#{@folder}/storage/zero",
                "#{@folder}/storage/a.txt/", "#{@folder}/storage/none.txt", "#{@folder}/storage/circle",
                "#{@folder}/storage/#{'a' * 300}", "/#{'a/' * 3000}"]
    of_uris = [outside, "/files/../secret.txt", "/files/%2e%2e/secret.txt", "/files/..%2fsecret.txt", "/files",
               "/filesa.txt", "/files/", "/files//etc/passwd", "/files/%00", "/files/a.txt%00.png", "/other/a.txt",
               "@named", "%2Ffiles/b", "http://test/files/a.txt", "/files/deep/../a.txt", "/files/deep/to-up/a.txt"]
    { "X-Sendfile" => of_paths, "X-Accel-Redirect" => of_uris }.each do |name, values|
      values.each { |value| assert_refused(name, value) }
    end
    assert_match(%r{X-Sendfile names ".*/secret.txt": it lies in none of the folders that are allowed}, @server.log)
    assert_match(/it leads up by `..`/, @server.log)
    assert_equal CONTENT, named("X-Sendfile" => "#{@folder}/storage/a.txt").body
  end

  # A client could choose the paths that Rack::Sendfile names (CVE-2025-61780).
  def test_clients_do_not_say_how_files_are_sent
    forged = { "X-Sendfile-Type" => "X-Accel-Redirect", "X-Accel-Mapping" => "/=/forged/", "x-accel-mapping" => "/=/f/",
               "X_Accel_Mapping" => "/=/forged/", "X_Sendfile_Type" => "X-Sendfile" }
    trusted = %w[--trusted-proxies loopback]
    { FOLDERS => "/=/", [] => nil, %w[--trusted-proxies 192.0.2.1] => nil, [*FOLDERS, *trusted] => "/=/",
      trusted => "/=/forged/, /=/f/" }.each do |options, expected|
      env = env_of(serve(@folder, *options).get("/env", forged).body)
      type = "X-Accel-Redirect" if expected&.include?("forged")
      assert_equal [expected, type], env.values_at("HTTP_X_ACCEL_MAPPING", "HTTP_X_SENDFILE_TYPE"), options
    end
  end

  def test_clients_of_a_web_server_that_speaks_fastcgi_or_lsapi_do_not_either
    server = serve(@folder, *GatewayTestCase::BINDS)
    { "fastcgi" => FastcgiClient, "lsapi" => LsapiClient }.each do |protocol, client|
      port = server.status["binds"].filter_map { |bind| bind[%r{\A#{protocol}://127\.0\.0\.1:(\d+)\z}, 1] }.first
      forged = { "X-Sendfile-Type" => "X-Accel-Redirect", "X-Accel-Mapping" => "/=/forged/" }
      env = env_of(client.tcp(port.to_i).use { |connection| connection.get("/env", forged).body })
      assert_empty env.keys.grep(/SENDFILE|ACCEL/), protocol
    end
  end

  def test_without_folders_the_header_is_for_a_proxy_in_front
    headers = { "X-Sendfile" => "#{@folder}/storage/a.txt", "X-Accel-Redirect" => "/files/a.txt" }
    @server = serve(@folder)
    assert_equal [200, "", *headers.values], of_answer(named(headers), :status, :body, "x-sendfile", "x-accel-redirect")
    named(headers)
    assert_equal 1, @server.log.scan("if no web server in front does that").length
    @server = serve(@folder, "--trusted-proxies", "127.0.0.1")
    target = "/named?#{query(headers: headers)}"
    connect_from(@server, "127.0.0.1") do |proxy|
      assert_equal headers.values, of_answer(proxy.get(target), *%w[x-sendfile x-accel-redirect])
    end
    connect_from(@server, "127.0.0.9") do |visitor|
      assert_equal [200, nil, nil], of_answer(visitor.get(target), :status, "x-sendfile", "x-accel-redirect")
    end
    assert_match(/name the folders of such files in `sendfile`/, @server.log)
  end

  private

  def make_traps
    { "to-secret" => "../secret.txt", "to-root" => "/", "to-evil" => "../storage-evil", "to-fd" => "/proc/self/fd",
      "zero" => "/dev/zero", "circle" => "circle", "sub/to-up" => ".." }.each do |name, target|
      File.symlink(target, File.join(@folder, "storage", name))
    end
    File.mkfifo(File.join(@folder, "storage/pipe"))
  end

  def assert_refused(name, value)
    answer = named({ name => value, "set-cookie" => "a=b", "content-disposition" => "attachment" })
    assert_equal [404, "Not Found\n", nil, nil, nil, "text/plain"],
                 of_answer(answer, :status, :body, name.downcase, "set-cookie", "content-disposition", "content-type"),
                 "#{name}: #{value[0, 100]}"
  end
end
