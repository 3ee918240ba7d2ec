"""The one exception a user's mistake raises; the command line prints it as one line and exits with 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can mend. The message is one line that says what to do."""


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> UserError:
    """The error for a name that does not exist, with the near matches first."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    guess = f"; did you mean {' or '.join(near)}?" if near else ";"
    return UserError(f"unknown {kind} '{name}'{guess} known: {', '.join(names)}{hint}")
