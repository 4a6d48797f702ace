"""What Markdown written for a repository needs to become a site."""

import os
import posixpath
import re

# Sections and pages in the index, docs/README.md.
SECTION = re.compile(r"^## (.+)$")
ITEM = re.compile(r"^- \[([^\]]+)\]\(([\w/-]+\.md)\)")
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
# The marks after a block's language are for the tests (test/support/documents.rb).
MARKED_FENCE = re.compile(r"^(```\w+) .*$", re.MULTILINE)


def on_config(config):
    """The index is the navigation."""
    config["nav"] = [{"Introduction": "README.md"}]
    with open(os.path.join(config["docs_dir"], "README.md"), encoding="utf-8") as index:
        for line in index:
            if section := SECTION.match(line):
                config["nav"].append({section[1]: []})
            elif (item := ITEM.match(line)) and os.path.exists(os.path.join(config["docs_dir"], item[2])):
                [pages] = config["nav"][-1].values()
                pages.append({item[1].replace("`", ""): item[2]})
    return config


def on_page_markdown(markdown, page, config, files):
    """Links that leave the pages lead to the repository. The index has the start page above it."""
    if page.file.src_path == "README.md":
        page.meta["template"] = "home.html"
        page.meta["title"] = "Application server for Ruby"
        markdown = markdown.replace("# Highball\n", "# Documentation\n", 1)
    folder = posixpath.dirname(page.file.src_path)

    def link(match):
        path = posixpath.normpath(posixpath.join(folder, match[2]))
        if files.get_file_from_path(path):
            return match[0]
        in_repository = posixpath.normpath(posixpath.join("docs", path))
        return f"{match[1]}{config['extra']['repository']}/blob/main/{in_repository}{match[3]}"

    return MARKED_FENCE.sub(r"\1", LINK.sub(link, markdown))


def on_post_page(output, page, config):
    return accessible(output)


def on_post_template(output_content, template_name, config):
    return accessible(output_content) if template_name.endswith(".html") else output_content


def accessible(html):
    """What the theme leaves out for keyboards and screen readers."""
    html = html.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)
    html = html.replace("<pre><span></span><code>", '<pre><span></span><code tabindex="0">')
    return html.replace('class="md-search__scrollwrap"', 'class="md-search__scrollwrap" tabindex="0"')
