# frozen_string_literal: true

require_relative "../../support/changed_blog"
require_relative "../../support/e2e_test"

# Parts of Rails that lean on the server: streams from an action, and jobs that outlast a response. (Action Cable and
# Active Storage are in the blog's tests.)
class RailsPartsTest < E2ETest
  include ChangedBlog

  PARTS = <<~'RUBY'
    class PartsController < ActionController::Base
      include ActionController::Live

      # The second event is sent when the client has the first one.
      def live
        response.headers["Content-Type"] = "text/event-stream"
        response.headers["Last-Modified"] = Time.now.httpdate # or Rack::ETag would wait for the end
        response.stream.write("data: first\n\n")
        sleep 0.01 until File.exist?(Rails.root.join("seen"))
        response.stream.write("data: second\n\n")
      ensure
        response.stream.close
      end
    end

    class WriteJob < ActiveJob::Base
      self.queue_adapter = :async

      def perform(text) = File.write(Rails.root.join("job-done"), text)
    end

    class JobsController < ActionController::Base
      def create
        WriteJob.perform_later(params[:text])
        head :accepted
      end
    end
  RUBY
  ROUTES = "  get 'live', to: 'parts#live'\n  get 'job', to: 'jobs#create'\n"
  HOST = { "Host" => "127.0.0.1" }.freeze

  %w[development production].each do |environment|
    define_method("test_live_in_#{environment}") { stream_from(serve(blog, environment: environment)) }
    define_method("test_jobs_in_#{environment}") { enqueue_in(serve(blog, environment: environment)) }
  end

  private

  def blog = blog_with(PARTS, ROUTES)

  def stream_from(server)
    pieces = []
    server.connect do |connection|
      connection.send_request("GET", "/live", HOST)
      connection.read_response do |piece|
        pieces << piece
        FileUtils.touch(File.join(server.app, "seen"))
      end
    end
    assert_equal "data: first\n\ndata: second\n\n", pieces.join
    assert_equal "data: first\n\n", pieces.first
  end

  def enqueue_in(server)
    done = File.join(server.app, "job-done")
    assert_equal 202, server.get("/job?text=by+the+way", HOST).status
    wait_for("the job") { File.exist?(done) && File.read(done) == "by the way" }
  end
end
