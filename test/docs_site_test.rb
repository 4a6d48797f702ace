# frozen_string_literal: true

require "minitest/autorun"
require "json"
require "open3"
require "tmpdir"
require_relative "support/axe"
require_relative "support/documents"
require_relative "support/site_server"

# The site made from docs/ (site/mkdocs.yml) builds without warnings, has every page, searches all of them, has no
# broken link, loads nothing from other hosts, and is accessible.
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
      in_browser(site) do |browser, address|
        assert_searches(browser, address)
        assert_accessible(browser, address)
      end
    end
  end

  private

  LOOKED_AT = %w[index configuration diagnosis 404].freeze

  def in_browser(site)
    skip "there is no Chromium, or no axe-core" unless File.exist?("/usr/bin/chromedriver") && Axe.installed?
    require_relative "support/browser"
    require_relative "support/screens"
    SiteServer.run(site) { |address| Browser.open { |browser| yield browser, address } }
  end

  def assert_searches(browser, address)
    browser.visit "#{address}/index.html"
    browser.find "label.md-header__button[for=__search], .md-search__input"
    browser.driver.find_element(css: ".md-search__input").send_keys("maintenance page")
    browser.find ".md-search-result__item a", text: "Maintenance page"
  end

  def assert_accessible(browser, address)
    found = LOOKED_AT.product([[390, true, "light"], [1280, false, "dark"]]).map do |page, (width, phone, scheme)|
      Screens.show(browser.driver, width, phone, scheme)
      SiteServer.visit(browser, "#{address}/#{page}.html")
      Deadline.wait("#{page} in #{width} px") { Screens.page_width(browser.driver) <= width }
      "#{page} #{width} #{scheme}: #{Axe.violations(browser.driver)}"
    end
    assert_empty found.grep_v(/: \z/)
  end

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

      html = html.gsub(%r{<code>[^<]*</code>}, "") # an example is no link
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
