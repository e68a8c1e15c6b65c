"""Does one player beat another? Files of episodes compared on the seeds that they share."""

from collections.abc import Sequence

from mergefall.typing import FilePath
from rich.text import Text

from mergefall_training.compare.results import columns_beside, setting
from mergefall_training.play.evaluation import Evaluation, Versus
from mergefall_training.play.tables import Table, to_terminal
from mergefall_training.progress import console


def compare_files(paths: Sequence[FilePath]) -> list[Versus]:
    """Compare the players of files that `evaluate` wrote with that of the first file, and print it.

    The intervals hold together with 95 %: of k comparisons, each has a confidence of 1 − 0.05 / k (Bonferroni).

    Raises ValueError for fewer than two files, and for files of different environments or without a common seed.
    """
    if len(paths) < 2:
        raise ValueError(
            f"{len(paths)} file was named; expected two or more, the first of which all others are compared with"
        )
    first, *others = played = [Evaluation.read(path) for path in paths]
    confidence = 1 - 0.05 / len(others)
    beside = [other.versus(first, confidence=confidence) for other in others]
    note = (
        "More: this player's mean minus the first one's; ratio: divided by it; chance: that this player has more "
        f"{first.headline} on a seed. On the seeds of both, below each its {100 * confidence:.4g}% interval; all "
        "comparisons hold together with 95% (Bonferroni)."
    )
    columns = {
        "player": [one.header.title for one in played],
        "N": [str(len(one.episodes)) for one in played],
        f"mean {first.headline}": [one.mean() for one in played],
        "seeds of both": ["", *(str(versus.games) for versus in beside)],
        **columns_beside("the first", [None, *beside]),
    }
    to_terminal(Table("", setting(first), columns, note))
    for other, versus in zip(others, beside, strict=True):
        console().print(Text(verdict(other.header.title, first.header.title, versus)), soft_wrap=True)
    return beside


def verdict(player: str, first: str, versus: Versus) -> str:
    """Which of two players has the higher mean, in a sentence, if the interval says it."""
    if not versus.verdict:
        return f"These games do not tell whether {player} is better than {first}."
    return f"{player} is {'better' if versus.verdict > 0 else 'worse'} than {first}."
