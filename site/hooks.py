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
    """Links that leave the pages lead to the repository."""
    folder = posixpath.dirname(page.file.src_path)

    def link(match):
        path = posixpath.normpath(posixpath.join(folder, match[2]))
        if files.get_file_from_path(path):
            return match[0]
        in_repository = posixpath.normpath(posixpath.join("docs", path))
        return f"{match[1]}{config['extra']['repository']}/blob/main/{in_repository}{match[3]}"

    return MARKED_FENCE.sub(r"\1", LINK.sub(link, markdown))
