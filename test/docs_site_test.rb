# frozen_string_literal: true

require "minitest/autorun"
require "json"
require "open3"
require "tmpdir"
require_relative "support/documents"

# The site made from docs/ (site/mkdocs.yml) builds without warnings, has every page, searches all of them, has no
# broken link, and loads nothing from other hosts.
class DocsSiteTest < Minitest::Test
  LOADED_FROM_ELSEWHERE =
    %r{<(?:script|img|source|link rel="(?:stylesheet|preconnect)")[^>]+(?:src|href)="(?:https?:)?//}

  def test_it_builds
    skip "mkdocs is not installed" unless system("mkdocs", "--version", %i[out err] => File::NULL)
    Dir.mktmpdir("highball-site") do |site|
      output, ended = Open3.capture2e("mkdocs", "build", "--quiet", "--strict", "--site-dir", site,
                                      "--config-file", File.join(Document::ROOT, "site/mkdocs.yml"))
      assert_predicate ended, :success?, output
      assert_pages(site)
      assert_links(site)
    end
  end

  private

  def assert_pages(site)
    found = JSON.parse(File.read(File.join(site, "search/search_index.json")))["docs"].map { |entry| entry["location"] }
    Document::FOR_USERS.grep(%r{\Adocs/}).each do |path|
      page = path.delete_prefix("docs/").sub(/\.md\z/, ".html").sub("README.html", "index.html")
      html = File.read(File.join(site, page), encoding: "UTF-8")
      refute html.match?(/<p>```|^```/), "#{page}: a block was not understood"
      assert_equal Document.new(path).blocks.length, html.scan('<div class="highlight">').length, page
      assert_includes found, page, "the search does not find it"
    end
  end

  # Files of the site, and headings on them. (Pages of the repository are links with a host.)
  def assert_links(site)
    Dir[File.join(site, "**/*.html")].each do |page|
      html = File.read(page, encoding: "UTF-8")
      refute html.match?(LOADED_FROM_ELSEWHERE), "#{page} loads something from another host"
      next if page.end_with?("404.html") # its links begin at the site's address

      html.scan(/(?:href|src|srcset)="([^":?]+)"/).flatten.uniq.each { |target| assert_target(page, target) }
    end
  end

  def assert_target(page, target)
    path, anchor = target.split("#", 2)
    file = path.empty? ? page : File.expand_path(path, File.dirname(page))
    file = File.join(file, "index.html") if File.directory?(file)
    assert File.exist?(file), "#{page} links to #{target}"
    return if anchor.to_s.empty? || !file.end_with?(".html")

    assert File.read(file, encoding: "UTF-8").include?("id=\"#{anchor}\""), "#{page} links to #{target}"
  end
end
