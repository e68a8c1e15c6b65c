"""Stages the source of the site from what is tracked: `python notebooks/site/pages.py` writes build/site-source.

Markdown files and notebooks become pages as they are, with their links led to pages of the site. Pages of environments,
players and results are made of docstrings, of `training/figures.jsonl`, and of a few games that are played here. Only
the first page, `index.md`, is typed for the site.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import gymnasium as gym
from bs4 import BeautifulSoup
from gymnasium.envs.registration import load_env_creator
from mergefall.games import ENVIRONMENTS
from mergefall_baselines import make, players
from mergefall_baselines.registry import environment_of, factory_of, signature_of
from mergefall_training.compare import compare, report
from mergefall_training.manual import listed
from PIL import Image
from sphinx.ext.napoleon import Config, GoogleDocstring

ROOT = Path(__file__).parents[2]
OUT = ROOT / "build" / "site-source"
sys.path.insert(0, str(ROOT))
from notebooks.site import addresses  # noqa: E402
from tests import figures, recipes  # noqa: E402

TRACKED = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
# Tracked file -> its page, where that has another name. Every other Markdown file and every notebook is a page, too.
RENAMED = {
    "README.md": "quickstart",
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
    "Quick start": "quickstart",
    "From the shell": "quickstart",
    "What it is good for": "index",
    "Environments": "environments/index",
    "Players": "players/index",
    "Guides": "index",
    "Results": "results/index",
    "Develop": "contributing",
    "Cite and licence": "cite",
}
# Modules with a page each in the reference of the API.
PUBLIC = {
    "mergefall": "game2048 game2048.reference game2048.heuristics tetris tetris.reference tetris.heuristics games env "
    "vector wrappers shaping text text_game kernels",
    "mergefall_baselines": "player registry tree",
    "mergefall_training": "play.evaluation play.statistics play.records play.verify play.advice play.watching "
    "play.puzzles play.preferences play.text_bench play.text_adapters "
    "compare compare.suite compare.results compare.versus compare.report wrappers learn learn.run learn.presets "
    "learn.demonstrations learn.sb3.train learn.sb3.networks learn.sb3.vec_env learn.sb3.export "
    "learn.distill.train learn.kickstart.train learn.afterstate.train learn.evolution.train learn.ntuple.train "
    "tune.weights",
}
MODULES = [f"{top}.{name}".rstrip(".") for top, names in PUBLIC.items() for name in ["", *names.split()]]
# Options without which a player cannot be made, or not in seconds.
OPTIONS = {
    "2048/lookahead": {"of": "2048/ntuple"},
    "2048/symmetric": {"of": "2048/distill"},
    "2048/optimal": {"rows": 2, "cols": 3},
}
STEPS = {"2048": 500, "tetris": 100}  # actions before the picture of a player or an environment

# -- tracked text -----------------------------------------------------------------------------------------------------

LINK = re.compile(r"(!?)\[((?:`[^`]*`|[^\[\]`])*)\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)|`([^`\n]+)`")
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
    if path not in TRACKED or path.endswith((".gz", ".npz")):
        return None
    shown_files.add(path)
    return f"files/{path}"


def staged(text: str, path: str, page: str) -> str:
    """Text of a tracked file as it stands on a page: links lead to pages, recipes and files are shown."""
    text = re.sub(r"<!-- show: (\S+) -->", lambda match: fenced(recipes.shown(ROOT / match[1])), text)
    parts = FENCE.split(text)
    parts[::2] = [LINK.sub(partial(_staged_link, path, page), part) for part in parts[::2]]
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
        anchor = anchor if leads_to == "quickstart" else ""
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
    return staged(found.strip(), "README.md", page)


def text_pages() -> None:
    """Markdown files and notebooks, each on its page."""
    for path in (path for path in TRACKED if path.endswith((".md", ".ipynb")) and path != "README.md"):
        text, page = (ROOT / path).read_text(encoding="utf-8"), str(page_of(path))
        if path.endswith(".ipynb"):
            notebook = json.loads(text)
            for cell in notebook["cells"]:
                if cell["cell_type"] == "markdown":
                    cell["source"] = staged("".join(cell["source"]), path, page)
            notebook["cells"][0]["source"] += addresses.in_colab(path)
            write(f"{page}.ipynb", json.dumps(notebook))
            continue
        if path == "training/RESULTS.md":
            text = figures.linked(text, lambda name: f"../notebooks/site/results/{name}.md")
            text += toctree([*figures.QUESTIONS, "benchmarks"])
        text = staged(text, path, page)
        for title in re.findall(r"<!-- readme: (.*) -->", text):
            text = text.replace(f"<!-- readme: {title} -->", readme(title, page))
        write(f"{page}.md", text)
    parts = [f"## {title}\n\n{readme(title, page)}" for title, page in SECTIONS.items() if page == "quickstart"]
    write("quickstart.md", "\n\n".join(["# Install and quick start", *parts]))


def file_pages() -> None:
    """Other files that links lead to, such as recipes and suites."""
    languages = {".py": "python", ".yaml": "yaml", ".c": "c"}
    for path in sorted(shown_files):
        text = (ROOT / path).read_text(encoding="utf-8")
        fence = "`" * 6
        code = f"{fence}{languages.get(Path(path).suffix, 'text')}\n{text}{fence}"
        write(f"files/{path}.md", f"---\norphan: true\n---\n# {Path(path).name}\n\n`{path}`\n\n{code}\n")


# -- pages of environments, players, results, modules -----------------------------------------------------------------


def picture(name: str, player: str, env_id: str | None = None) -> str:
    """Draw a player's first game after some steps, or its end if it ends before; the picture's file."""
    options = OPTIONS.get(player, {})
    home, kwargs = environment_of(player, options)
    env = gym.make(env_id or home, render_mode="rgb_array", **({} if env_id else kwargs))
    playing = make(player, **options).with_rules(env.unwrapped.rules.__dict__)
    observation, _ = env.reset(seed=0)
    state, over, step = playing.start(0), False, 0
    while not over and step < STEPS[ENVIRONMENTS[env_id or home].name]:
        action, state = playing.predict(observation, state)
        observation, _, terminated, truncated, _ = env.step(int(action))
        over, step = terminated or truncated, step + 1
    content = BytesIO()
    Image.fromarray(env.render()).quantize(64).save(content, "png", optimize=True)
    write(f"images/{name}.png", content.getvalue())
    return f"images/{name}.png"


def environment_pages() -> None:
    overview = readme("Environments", "environments/index")
    for env_id, player in zip(ENVIRONMENTS, SHOWN_BY, strict=True):
        name, spec, env = env_id.partition("/")[2], gym.spec(env_id), gym.make(env_id)
        creator = class_of(spec)
        file = picture(f"environment-{name}", player, env_id)
        facts = {
            "Make it": f'gym.make("{env_id}")',
            "Action space": env.action_space,
            "Observation space": env.observation_space,
            "Arguments and defaults": listed(inspect.signature(creator), spec.kwargs),
        }
        about = re.sub(r"^>>> .*?(?=\n\n|\Z)", _fenced_example, inspect.getdoc(creator) or "", flags=re.M | re.S)
        head = f"# {name}\n\n![A game of {name}, played by {player}](../{file})\n\n"
        write(f"environments/{name}.md", head + table(["", ""], [[key, f"`{f}`"] for key, f in facts.items()]) + about)
        cell = f"[`{env_id}`]({name}.md)"
        overview = overview.replace(f"| {cell} |", f"| ![](../{file}) {cell} |")
    write(
        "environments/index.md",
        f"# Environments\n\n{overview}\n" + toctree(env_id.partition("/")[2] for env_id in ENVIRONMENTS),
    )


def _fenced_example(match: re.Match[str]) -> str:
    return fenced(match[0], "pycon")


def player_pages() -> None:
    rows = []
    for player, about in players().items():
        page, options = NAMED[player], OPTIONS.get(player, {})
        file = picture(page.replace("/", "-"), player)
        given = "".join(f" --option {key}={value}" for key, value in options.items())
        docstring = inspect.getdoc(factory_of(player)) or ""
        config = Config(napoleon_use_param=False, napoleon_use_rtype=False)
        text = GoogleDocstring(docstring, config, what="function")
        parts = [
            f"# {player}",
            f"![A game that {player} plays](../{file})",
            fenced(call(player)),
            f"`````{{eval-rst}}\n{text}\n`````",
            strength(player, page),
            "## From the shell",
            fenced(f"mergefall watch {player}{given}\nmergefall evaluate {player}{given} --episodes 100", "text"),
        ]
        write(f"{page}.md", "\n\n".join(parts))
        rows.append([f"![](../{file})", f"[`{player}`]({relative(page, 'players/index')}.md)", about])
    pages = toctree([*(relative(NAMED[player], "players/index") for player in players()), "networks", "agents"])
    write("players/index.md", "# Players\n\n" + table(["", "player", "what it is"], rows) + pages)


def call(player: str) -> str:
    """The call of `make` with all options and their defaults."""
    signature = signature_of(player)
    text = f'make("{player}"{", " * bool(signature.parameters)}{listed(signature)})'
    return textwrap.fill(text, 88, subsequent_indent="     ", break_long_words=False, break_on_hyphens=False)


def strength(player: str, page: str) -> str:
    """What is on file about a player: a row for each record."""
    rows = []
    for record in figures.records():
        if record.get("player") != player or record.get("mean") is None or record.get("kind"):
            continue
        game, spec = ENVIRONMENTS[record["env"]], gym.spec(record["env"])
        defaults = {one.name: one.default for one in inspect.signature(class_of(spec)).parameters.values()}
        kwargs = defaults | spec.kwargs | record["env_kwargs"]
        where = f"{spec.name} {'×'.join(str(kwargs[name]) for name in game.size)}"
        mean = figures.value(record, f" {record['figure']}")
        link = f"[{record['question']}]({relative('results', page)}/{record['question']}.md)"
        rows.append([record["label"], where, figures.games(record), mean, figures.milliseconds(record), link])
    header = ["as", "where", "games", "mean [95 %]", "ms a move", "full table"]
    return "## Strength\n\n" + table(header, rows) if rows else ""


def class_of(spec: Any) -> Any:
    return load_env_creator(spec.entry_point)


def result_pages() -> None:
    for name in figures.QUESTIONS:
        page = f"results/{name}"
        write(f"{page}.md", staged(figures.page(name, "../../../"), f"notebooks/site/{page}.md", page))


def module_pages() -> None:
    rows = []
    for module in MODULES:
        about = (import_module(module).__doc__ or "").split("\n")[0]
        above = getattr(import_module(module.rpartition(".")[0] or module), "__all__", [])
        known = set(getattr(import_module(module), "__all__", [])) & set(above) if "." in module else set()
        rst = f".. automodule:: {module}\n   :members:\n   :exclude-members: {', '.join(sorted(known))}\n"
        write(f"api/{module}.md", f"# {module}\n\n```{{eval-rst}}\n{rst}```\n")
        rows.append([f"[{module}]({module}.md)", about])
    write("api/index.md", "# Modules\n\n" + table(["module", "what is in it"], rows) + toctree(MODULES))


def live_page() -> None:
    """Replays of the shipped players: those of a page that `mergefall report` writes, in a page of the site."""
    games, css = OUT.parent / "site-games", (report.PAGE / "page.css").read_text(encoding="utf-8")
    compare(Path(__file__).parent / "live.yaml", games, workers=1)
    report.report([games], games / "report.html", replays=1, values=200)
    soup = BeautifulSoup((games / "report.html").read_text(encoding="utf-8"), "html.parser")
    for part in soup.select("section > .wide, .plots"):
        part.decompose()  # tables and plots of so few games say nothing
    style = re.sub(r"^body \{.*?\}\n", "", "* {" + css.partition("* {")[2], flags=re.MULTILINE | re.DOTALL)
    body = "".join(map(str, soup.select("main, script")))
    write("live.html.txt", f'<style>.report {{ {style} }}</style>\n<div class="report">\n{body}\n</div>\n')
    about = "Choose two players, or play yourself: choose `you` as a player. The other one starts from the same seed."
    write("live.md", f"# Watch and play\n\n{about}\n\n```{{raw}} html\n:file: live.html.txt\n```\n")


SHOWN_BY = "2048/expectimax", "tetris/bcts", "tetris/sz-afterstate", "quintris/expectimax"
NAMED = {player: f"players/{player.replace('/', '-')}" for player in players()}
NAMED |= {env_id: f"environments/{env_id.partition('/')[2]}" for env_id in ENVIRONMENTS}


def main() -> None:
    text_pages()
    environment_pages()
    player_pages()
    result_pages()
    module_pages()
    write("cite.md", f"# Cite and licence\n\n{readme('Cite and licence', 'cite')}\n")
    live_page()
    file_pages()
    for path in OUT.rglob("*"):
        if path.is_file() and path not in written:
            path.unlink()


if __name__ == "__main__":
    main()
