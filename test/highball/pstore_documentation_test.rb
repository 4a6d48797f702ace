# frozen_string_literal: true

require "cgi"
require "minitest/autorun"
require "open3"
require "tmpdir"
require "highball/pstore"

# The documentation that rdoc makes of PStore and the session stores has a comment for each public class and method.
class PStoreDocumentationTest < Minitest::Test
  LIB = File.expand_path("../../lib/highball", __dir__)
  FILES = %w[pstore.rb yaml_store.rb session/store.rb session/pstore.rb session/rails.rb].map do |name|
    File.join(LIB, name)
  end

  def test_everything_public_is_documented
    report = rdoc("--coverage-report", *FILES)
    assert_match(/^100% documentation!/, report)
  end

  def test_the_pages_have_the_methods
    Dir.mktmpdir("highball-rdoc") do |folder|
      rdoc("--output", "#{folder}/pages", *FILES)
      page = File.read("#{folder}/pages/Highball/PStore.html")
      ["Runs the block in a transaction", "Puts this class in the place of", "Ends the transaction without its changes"]
        .each { |words| assert_includes page, words }
      names = Highball::PStore.public_instance_methods(false) - %i[ultra_safe=]
      names.each { |name| assert_includes page, ">#{CGI.escapeHTML(name.to_s)}<" }
    end
  end

  private

  def rdoc(*arguments)
    output, status = Open3.capture2e("rdoc", *arguments)
    assert_predicate status, :success?, output
    output
  rescue Errno::ENOENT
    skip "rdoc is not installed"
  end
end
