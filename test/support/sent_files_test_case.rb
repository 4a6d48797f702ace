# frozen_string_literal: true

require "json"
require_relative "e2e_test"
require_relative "env_mirror"

# A test of files that an application sends.
class SentFilesTestCase < E2ETest
  include EnvMirror

  # `/body` answers with the file of the query as its body; `/named` with headers and a status from the query; all else
  # with the env.
  APP = <<~'RUBY'
    require "json"
    OnDisk = Struct.new(:to_path) { def each = yield(File.binread(to_path)) }
    run lambda { |env|
      asked = Rack::Utils.parse_nested_query(env["QUERY_STRING"])
      status, headers = asked.fetch("status", 200).to_i, { "content-type" => "text/x" }.merge(asked["headers"] || {})
      case env["PATH_INFO"]
      when "/body" then [status, headers, OnDisk.new(asked["path"])]
      when "/named" then [status, headers.merge("content-length" => "0"), []]
      when "/listed" then [status, headers.to_a, ["not sent"].each]
      else [200, {}, [JSON.generate(env.select { |_, value| value.is_a?(String) })]]
      end
    }
  RUBY
  CONTENT = "0123456789abcdef"
  FILES = { "config.ru" => APP, "storage/a.txt" => CONTENT, "storage/odd name%?#.txt" => "odd", "storage/empty" => "",
            "storage/sub/b.txt" => "b", "protected/a.txt" => "protected", "storage-evil/c.txt" => "no",
            "secret.txt" => "no" }.freeze
  FOLDERS = %w[--sendfile storage --sendfile /files=protected --sendfile /files/deep/=storage/sub].freeze

  def setup
    super
    @folder = File.realpath(folder_with(FILES))
  end

  private

  def serve_files(*options, **settings)
    @server = serve(@folder, *FOLDERS, *options, **settings)
  end

  def query(parameters) = Rack::Utils.build_nested_query(parameters.transform_keys(&:to_s))
  def get(target, fields) = @server.get(target, fields)

  def named(headers, parameters = {}, fields = {})
    get("/named?#{query({ headers: headers }.merge(parameters))}", fields)
  end

  # Fields by their names, and members by Symbols.
  def of_answer(answer, *names)
    names.map { |name| name.is_a?(Symbol) ? answer.public_send(name) : answer[name] }
  end
end
