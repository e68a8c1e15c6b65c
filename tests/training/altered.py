"""Files of records that someone altered who also knows the checksum."""

import json

from mergefall_training.play.records import checksum, header_from


def rewritten(path, into, header=None, game=None, line=None):
    """A copy of a file of records whose header and games, or the game in one line, hold other values."""
    about, *games = [json.loads(text) for text in path.read_text().splitlines()]
    about |= header or {}
    for number, one in enumerate(games, start=1):
        del one["checksum"]
        one |= (game or {}) if line in (None, number) else {}
        one["checksum"] = checksum(header_from(dict(about)), one)
    into.parent.mkdir(parents=True, exist_ok=True)
    into.write_text("".join(f"{json.dumps(one)}\n" for one in (about, *games)))
