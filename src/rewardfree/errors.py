"""The one exception a user's mistake raises; the command line prints it as one line and exits with 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can mend. The message is one line that says what to do."""


_MOST_NAMES = 30


def near(name: str, known: Iterable[str]) -> str:
    """What may have been meant, and what there is unless it is too much to read, as the end of a message."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    guess = f"; did you mean {' or '.join(close)}?" if close else ";"
    rest = ", ".join(names) if len(names) <= _MOST_NAMES else f"{len(names)} names, see `rewardfree list`"
    return f"{guess} known: {rest}"


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> UserError:
    """The error for a name that does not exist, with the near matches first."""
    return UserError(f"unknown {kind} '{name}'{near(name, known)}{hint}")
