"""The text of tracked files as it stands on pages of the site, and files of the site's source."""

import os
import re
import subprocess
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from mergefall.games import ENVIRONMENTS
from mergefall_baselines import players

from tests import recipes

ROOT = Path(__file__).parents[2]
OUT = ROOT / "build" / "site-source"
TRACKED = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
# Tracked file -> its page, where that has another name. Every other Markdown file and every notebook is a page, too.
RENAMED = {
    "README.md": "index",
    "envs/README.md": "environments/reference",
    "baselines/README.md": "players/reference",
    "training/README.md": "training/reference",
    "training/CLIENTS.md": "training/libraries",
    "training/RESULTS.md": "results/index",
    "tests/README.md": "contributing",
    "tests/benchmarks/README.md": "results/benchmarks",
    "CHANGELOG.md": "changelog",
    "CITATION.cff": "cite",
    "training/mergefall_training/learn/shipped/README.md": "players/agents",
    "baselines/mergefall_baselines/game2048/networks/README.md": "players/networks",
}
# Sections of README.md, and the page that shows each or stands for it.
SECTIONS = {
    "Install": "quickstart",
    "Quick start": "index",
    "Results": "index",
    "Environments": "environments/index",
    "Guides": "index",
    "Cite and licence": "cite",
}
# Modules with a page each in the reference of the API.
PUBLIC = {
    "mergefall": "game2048 game2048.reference game2048.heuristics tetris tetris.reference tetris.heuristics "
    "tetris.keys tetris.keys.reference tetris.versus tetris.versus.parallel games env vector wrappers shaping "
    "text text_game kernels",
    "mergefall_baselines": "player registry tree tetris.protocol",
    "mergefall_training": "play.evaluation play.statistics play.records play.verify play.advice play.watching "
    "play.puzzles play.preferences play.text_bench "
    "compare compare.suite compare.results compare.versus compare.report wrappers learn learn.run learn.presets "
    "learn.demonstrations learn.sb3.train learn.sb3.networks learn.sb3.vec_env learn.sb3.export "
    "learn.distill.train learn.kickstart.train learn.afterstate.train learn.evolution.train learn.ntuple.train "
    "tune.weights",
}
MODULES = [f"{top}.{name}".rstrip(".") for top, names in PUBLIC.items() for name in ["", *names.split()]]
# Players and environments -> their pages.
NAMED = {player: f"players/{player.replace('/', '-')}" for player in players()}
NAMED |= {env_id: f"environments/{env_id.partition('/')[2]}" for env_id in ENVIRONMENTS}

LINK = re.compile(r"(!?)\[((?:`[^`]*`|[^\[\]`])*)\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)|`([^`\n]+)`")
INTERVAL = re.compile(r"(?<=\w) \[(−?[\d.]+[kM]?), (−?[\d.]+[kM]?)\]")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
written: set[Path] = set()
shown_files: set[str] = set()  # tracked files without a page of another kind that links lead to


def write(name: str, content: str | bytes) -> None:
    """Write a file of the source. One that stays the same keeps its date, so Sphinx does not read it anew."""
    path, content = OUT / name, content.encode() if isinstance(content, str) else content
    written.add(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


def page_of(path: str) -> str | None:
    """The page of a tracked file; None for folders and for what is no text."""
    if path in RENAMED:
        return RENAMED[path]
    if path.endswith((".md", ".ipynb")):
        return path.removeprefix("notebooks/site/").rpartition(".")[0]
    module = path.removesuffix(".py").removesuffix("/__init__").partition("/")[2].replace("/", ".")
    if module in MODULES:
        return f"api/{module}"
    if path not in TRACKED or path.endswith(".npz"):
        return None
    shown_files.add(path)
    return f"files/{path}"


def staged(text: str, path: str, page: str) -> str:
    """Text of a tracked file as it stands on a page: links lead to pages, recipes and files are shown."""
    text = re.sub(r"<!-- show: (\S+) -->", lambda match: fenced(recipes.shown(ROOT / match[1])), text)
    parts = FENCE.split(text)
    whole = "\N{NO-BREAK SPACE}[\\1,\N{NO-BREAK SPACE}\\2]"  # a line breaks before or after an interval
    parts[::2] = [LINK.sub(partial(_staged_link, path, page), INTERVAL.sub(whole, part)) for part in parts[::2]]
    return "".join(parts)


def _staged_link(path: str, page: str, match: re.Match[str]) -> str:
    picture, text, target, anchor, code = match.groups()
    if code:  # the name of a player or an environment leads to its page
        return f"[`{code}`]({relative(NAMED[code], page)}.md)" if code in NAMED and NAMED[code] != page else match[0]
    full = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
    if picture:
        name = f"images/{full.replace('/', '-')}"
        write(name, (ROOT / full).read_bytes())
        return f"![{text}]({relative(name, page)})"
    leads_to = page_of(full)
    if full == "README.md" and anchor:
        leads_to = {slug(title): page for title, page in SECTIONS.items()}.get(anchor[1:], "index")
        anchor = ""
    if leads_to == page and not anchor:
        return text
    suffix = ".ipynb" if full.endswith(".ipynb") else ".md"
    return f"[{text}]({relative(leads_to, page)}{suffix}{anchor or ''})" if leads_to else text


def relative(target: str, page: str) -> str:
    return os.path.relpath(target, os.path.dirname(page) or ".")


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def fenced(text: str, language: str = "python") -> str:
    return f"```{language}\n{text.strip()}\n```"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def toctree(pages: Iterable[str]) -> str:
    """What places pages below the one that it stands on."""
    return "\n" + fenced("\n".join([":hidden:", "", *pages]), "{toctree}") + "\n"


def readme(title: str, page: str) -> str:
    """A section of README.md for a page."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return staged(found.strip("\n"), "README.md", page)
