"""Stages the source of the site from what is tracked: `python -m notebooks.site.pages` writes build/site-source.

Markdown files and notebooks become pages as they are, with their links led to pages of the site. Pages of environments,
players and results are made of docstrings, of `training/figures.jsonl`, and of a few games that are played here. Only
the first page, `index.md`, and the guides are typed for the site.
"""

import inspect
import json
import os
import re
import shlex
import textwrap
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import gymnasium as gym
from bs4 import BeautifulSoup
from gymnasium.envs.registration import load_env_creator
from mergefall.games import ENVIRONMENTS, game_of
from mergefall_baselines import players
from mergefall_baselines.registry import environment_of, factory_of, signature_of
from mergefall_training.compare import compare, report
from mergefall_training.manual import listed
from PIL import Image
from sphinx.ext.napoleon import Config, GoogleDocstring

from notebooks.play import SHOWN_BY, board
from notebooks.site import addresses
from notebooks.site.staging import (
    MODULES,
    NAMED,
    OUT,
    ROOT,
    TRACKED,
    fenced,
    page_of,
    readme,
    relative,
    shown_files,
    staged,
    table,
    toctree,
    write,
    written,
)
from tests import figures

# Options without which a player cannot be made, or not in seconds.
OPTIONS = {
    "2048/lookahead": {"of": "2048/ntuple"},
    "2048/symmetric": {"of": "2048/distill"},
    "2048/optimal": {"rows": 2, "cols": 3},
    "tetris/bot": {"command": ["python", "-m", "mergefall_baselines.tetris.protocol", "tetris/bcts"]},
}

# -- tracked text -----------------------------------------------------------------------------------------------------


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
    """Draw a player's first game (`board`); the picture's file."""
    options = OPTIONS.get(player, {})
    home, kwargs = environment_of(player, options)
    drawn = board(env_id or home, player, {} if env_id else kwargs, options)
    content = BytesIO()
    Image.fromarray(drawn).quantize(64).save(content, "png", optimize=True)
    write(f"images/{name}.png", content.getvalue())
    return f"images/{name}.png"


def environment_pages() -> None:
    overview = re.sub(r"!\[.*\n\n", "", readme("Environments", "environments/index"))  # each row has its picture
    for env_id, player in SHOWN_BY.items():
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
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in options.items()}
        given = "".join(f" --option {shlex.quote(f'{key}={text}')}" for key, text in texts.items())
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
        link = f"[`{player}`]({relative(page, 'players/index')}.md)"
        rows.append([f"![](../{file}) {link}", about, best(player)])
    pages = toctree([*(relative(NAMED[player], "players/index") for player in players()), "networks", "agents"])
    write(
        "players/index.md", "# Players\n\n" + table(["player", "what it is", "best mean on file [95 %]"], rows) + pages
    )


def call(player: str) -> str:
    """The call of `make` with all options and their defaults."""
    signature = signature_of(player)
    text = f'make("{player}"{", " * bool(signature.parameters)}{listed(signature)})'
    return textwrap.fill(text, 88, subsequent_indent="     ", break_long_words=False, break_on_hyphens=False)


def on_file(player: str) -> list[dict[str, Any]]:
    """The records of a player that hold a mean."""
    records = [record for record in figures.records() if record.get("player") == player]
    return [record for record in records if record.get("mean") is not None and not record.get("kind")]


def where(record: dict[str, Any]) -> str:
    """The environment of a record, with its size."""
    game, spec = game_of(record["env"]), gym.spec(record["env"])
    defaults = {one.name: one.default for one in inspect.signature(class_of(spec)).parameters.values()}
    kwargs = defaults | spec.kwargs | record["env_kwargs"]
    return f"{spec.name} {'×'.join(str(kwargs[name]) for name in game.size)}"


def best(player: str) -> str:
    """The mean score or lines on file with the highest lower end, which a lucky small sample has not, and its time."""
    records = [record for record in on_file(player) if record["figure"] in ("score", "lines")]
    if not records:
        return ""
    record = max(records, key=lambda record: (record.get("low", 0), record["mean"]))
    mean, time = figures.value(record, f" {record['figure']}"), figures.milliseconds(record)
    return f"{mean}, {where(record)}" + f", {time} ms a move" * bool(time)


def strength(player: str, page: str) -> str:
    """What is on file about a player: a row for each record."""
    rows = []
    for record in on_file(player):
        mean = figures.value(record, f" {record['figure']}")
        link = f"[{record['question']}]({relative('results', page)}/{record['question']}.md)"
        rows.append([record["label"], where(record), figures.games(record), mean, figures.milliseconds(record), link])
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
    for part in soup.select("section > .wide, section > .note, .plots"):
        part.decompose()  # tables and plots of so few games say nothing
    for heading in soup.select("h2"):
        heading.string = heading.text.replace("-", " ").replace("x", "×")
    style = re.sub(r"^body \{.*?\}\n", "", "* {" + css.partition("* {")[2], flags=re.MULTILINE | re.DOTALL)
    body = "".join(map(str, soup.select("main, script")))
    write("live.html.txt", f'<style>.report {{ {style} }}</style>\n<div class="report">\n{body}\n</div>\n')
    about = (
        "Games that shipped players played while this page was made. Choose two players, step or scrub through their "
        "games, and see what each thinks of its actions; or choose *you* as a player and play from the same seed."
    )
    write("live.md", f"# Watch and play\n\n{about}\n\n```{{raw}} html\n:file: live.html.txt\n```\n")


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # networks this small are no faster on two
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
