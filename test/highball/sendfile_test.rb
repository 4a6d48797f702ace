# frozen_string_literal: true

require_relative "../support/server_test_case"

# Files that headers of responses name, as the worker finds them. (What clients get is in test/e2e.)
class SendfileTest < ServerTestCase
  IS_FILE = 4 # flag of a HEAD frame
  FOLDERS = [{ prefix: nil, folder: "lib" }, { prefix: "/code", folder: "test/support" }].freeze

  def test_a_file_is_announced_and_its_descriptor_sent
    path = File.expand_path("../../lib/highball.rb", __dir__)
    answer = sent("x-sendfile" => path, "content-length" => "0")
    assert_equal [%i[head file end], 200, IS_FILE], [answer.kinds, answer.status, answer.frames[0][1].getbyte(2)]
    assert_equal [0, File.size(path)], answer.frames[1][1].unpack("Q<2")
    assert_equal [File.size(path).to_s, nil], [answer.head["content-length"], answer.head["x-sendfile"]]
    assert_equal %i[head file end], sent("x-accel-redirect" => "/code/deadline.rb").kinds
  end

  def test_values_that_name_no_file
    [[], nil, "", "a", "/none\n/other", %w[/none /other], 7].each do |value|
      answer = sent("x-sendfile" => value)
      assert_equal [404, "Not Found\n", nil], [answer.status, answer.body, answer.head["x-sendfile"]], value.inspect
    end
    assert_match(/x-sendfile names .*it is no absolute path/, log)
  end

  private

  def sent(headers)
    serve(sendfile: Highball::Sendfile.new(FOLDERS, below: File.expand_path("../..", __dir__))) { [200, headers, []] }
    ask
  end
end
