# frozen_string_literal: true

require_relative "../../support/changed_blog"
require_relative "../../support/e2e_test"

# `send_file` in Rails: the worker is free while the file is sent, whatever header `config.action_dispatch` has for
# that.
class RailsSentFilesTest < E2ETest
  include ChangedBlog

  CONTROLLER = <<~'RUBY'
    class DownloadsController < ActionController::Base
      def show
        send_file Rails.root.join("storage", params[:name]), type: "application/zip"
      end

      def ping
        render plain: "here"
      end
    end
  RUBY
  ROUTES = "  get 'download', to: 'downloads#show'\n  get 'ping', to: 'downloads#ping'\n"
  HOST = { "Host" => "127.0.0.1" }.freeze
  LARGE = 5 * 1024 * MIB
  HEADER = "  config.action_dispatch.x_sendfile_header = ENV['SENDFILE_HEADER'].presence\n"

  def test_without_a_setting = assert_sends(serve_blog)
  def test_with_x_sendfile_in_its_configuration = assert_sends(serve_blog("X-Sendfile", "--sendfile", "storage"))

  def test_with_x_accel_redirect_in_its_configuration
    assert_sends(serve_blog("X-Accel-Redirect", "--sendfile", "storage"))
    refute_match(/mapping header missing/i, @servers.last.log)
  end

  private

  def serve_blog(header = nil, *options)
    serve(blog, *options, threads: 1, env: { "SENDFILE_HEADER" => header.to_s })
  end

  def blog
    folder = blog_with(CONTROLLER, ROUTES)
    insert(folder, "config/environments/production.rb", HEADER)
    FileUtils.mkdir_p(File.join(folder, "storage"))
    File.open(File.join(folder, "storage/large.zip"), "wb") { |file| file.truncate(LARGE) }
    folder
  end

  def assert_sends(server)
    server.connect do |slow|
      slow.send_request("GET", "/download?name=large.zip", HOST)
      assert_match(%r{\AHTTP/1.1 200 OK}, slow.read_bytes(4096))
      assert_equal "here", server.get("/ping", HOST, within: 10).body
      assert_equal MIB, slow.read_bytes(MIB).bytesize
    end
    part = server.get("/download?name=large.zip", HOST.merge("Range" => "bytes=-3"))
    assert_equal [206, "\0" * 3, "bytes #{LARGE - 3}-#{LARGE - 1}/#{LARGE}", "application/zip"],
                 [part.status, part.body, part["content-range"], part["content-type"]]
    assert_match(/attachment; filename="large.zip"/, part["content-disposition"])
    assert_empty part.fields.map(&:first).grep(/sendfile|accel/)
  end
end
