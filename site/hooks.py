"""What Markdown written for a repository needs to become a site."""

import posixpath
import re

LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
# The marks after a block's language are for the tests (test/support/documents.rb).
MARKED_FENCE = re.compile(r"^(```\w+) .*$", re.MULTILINE)


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
