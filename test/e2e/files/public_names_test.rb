# frozen_string_literal: true

require_relative "../../support/changed_blog"
require_relative "../../support/e2e_test"

# Rails' own middleware for static files, in production: it looks for a file only where there may be one.
class PublicNamesTest < E2ETest
  include ChangedBlog

  CONTROLLER = <<~'RUBY'
    class LooksController < ActionController::Base
      ActionDispatch::FileHandler.prepend(Module.new) if ENV["CHANGED"]

      def show
        render plain: "#{params[:name]} #{ActionDispatch::Static.ancestors.first}"
      end
    end
  RUBY
  HOST = { "Host" => "127.0.0.1" }.freeze
  ROUTE = "  get 'looks/:name', to: 'looks#show'\n"

  def test_what_is_no_file_passes_by_and_a_new_file_is_served
    folder = blog
    server = serve(folder)
    assert_equal "a Highball::PublicNames::Passing", server.get("/looks/a").body
    FileUtils.mkdir(File.join(folder, "public/looks"))
    File.write(File.join(folder, "public/looks/a.html"), "a file")
    Deadline.wait("the file is served") { server.get("/looks/a").body == "a file" }
    assert_equal "b Highball::PublicNames::Passing", server.get("/looks/b").body
  end

  def test_a_changed_middleware_and_one_in_development_stay_as_they_are
    [{ env: { "CHANGED" => "1" } }, { environment: "development" }].each do |settings|
      assert_equal "a ActionDispatch::Static", serve(blog, **settings).get("/looks/a", HOST).body
    end
  end

  private

  def blog = blog_with(CONTROLLER, ROUTE)
end
