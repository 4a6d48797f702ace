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
    assert_match(/x-sendfile names .*it is not an absolute path/, log)
  end

  # The words with the folder's name reach the log.
  def test_a_folder_with_letters_beyond_ascii
    answer = sent({ "x-sendfile" => "/größe/none" }, "/größe")
    assert_equal [404, "Not Found\n"], [answer.status, answer.body]
    assert_includes log, "it must lie in /größe/lib or /größe/test/support"
  end

  private

  def sent(headers, below = File.expand_path("../..", __dir__))
    serve(sendfile: Highball::Sendfile.new(FOLDERS, below: below)) { [200, headers, []] }
    ask
  end
end
