"""The site that `make site` built, in Chromium and as files: links, console, widths, themes, search."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt

SITE = Path(__file__).parents[2] / "build" / "site"
pytestmark = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="no build/site: make site")
# Each page in a frame as wide as a phone: what is wider than the frame, and in both themes the text's contrast.
SURVEY = """async () => {
  const frame = document.querySelector("iframe"), found = [];
  const brightness = (colour) => {
    const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((part) => part / 255);
    const [r, g, b] = parts.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  for (const page of PAGES) {
    await new Promise((resolve) => { frame.onload = resolve; frame.src = page; });
    const body = frame.contentDocument.body, contrasts = [];
    for (const theme of ["light", "dark"]) {
      body.dataset.theme = theme;
      const style = frame.contentWindow.getComputedStyle(body);
      const two = [brightness(style.color), brightness(style.backgroundColor)].sort((a, b) => b - a);
      contrasts.push(two[0] / two[1]);
    }
    found.push([page, frame.contentDocument.scrollingElement.scrollWidth, Math.min(...contrasts)]);
  }
  return found;
}"""
SEARCH = """async () => {
  for (let i = 0; i < 100; i++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const links = document.querySelectorAll("#search-results li a");
    if (links.length) return [...links].map((link) => link.textContent);
  }
  return [];
}"""


class Addresses(HTMLParser):
    """What a page can be entered at (`ids`), and what it leads to or loads (`targets`)."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.targets = set(), []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        self.ids |= {names[key] for key in ("id", "name") if names.get(key)}
        self.targets += [names[key] for key in ("href", "src") if names.get(key)]


def pages():
    return sorted(page for page in SITE.rglob("*.html") if "_static" not in page.parts)


def test_links_and_anchors_lead_somewhere():
    known = {page: Addresses(page) for page in pages()}
    assert len(known) > 100
    broken = []
    for page, addresses in known.items():
        for target in addresses.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not file.is_file() or (parts.fragment and file in known and parts.fragment not in known[file].ids):
                broken.append(f"{page.relative_to(SITE)}: {target}")
    assert broken == []


def test_no_code_of_the_first_page_is_lost():
    """An indented block that begins a page's section would else become a paragraph."""
    readme = (SITE.parents[1] / "README.md").read_text(encoding="utf-8")
    blocks = [token.content for token in MarkdownIt().parse(readme) if token.type in ("code_block", "fence")]
    shown = "".join(
        unescape(re.sub(r"<[^>]*>", "", code))
        for page in pages()
        for code in re.findall(r"<pre>(.*?)</pre>", page.read_text(encoding="utf-8"), re.DOTALL)
    )
    assert len(blocks) >= 5
    assert [block for block in blocks if block.strip() not in shown] == []


def test_every_page_fits_a_phone_and_is_readable_in_both_themes(asked, tmp_path):
    (tmp_path / "frame.html").write_text('<iframe style="width: 400px; height: 800px; border: 0"></iframe>')
    addresses = json.dumps([page.as_uri() for page in pages()])
    found = asked(tmp_path / "frame.html", SURVEY.replace("PAGES", addresses))
    assert len(found) == len(pages())
    assert [(page, width) for page, width, _ in found if width > 400] == []
    assert [(page, contrast) for page, _, contrast in found if contrast < 4.5] == []  # WCAG 2.1, level AA


def test_search_needs_no_server(asked):
    assert "2048/expectimax" in asked(SITE / "search.html", SEARCH, "?q=expectimax")
