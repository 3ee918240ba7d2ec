"""Table 2 as it was published: mean and standard deviation over 8 runs of 10^6 frames at width 1024."""

from __future__ import annotations

BUDGET = "10^6 frames, width 1024, batch 1024, 50,000 updates of planning, 8 seeds, on GPUs"
_COLUMNS = ("icm", "apt", "diayn", "aps", "disagreement", "smm", "rnd", "gfa-rfe")
_ROWS = {
    ("walker", "flip"): "177+-80 523+-57 207+-119 246+-103 570+-32 242+-71 507+-48 554+-64",
    ("walker", "run"): "108+-41 304+-38 113+-38 132+-39 340+-37 116+-21 306+-34 339+-34",
    ("walker", "stand"): "466+-17 891+-62 587+-169 573+-177 726+-79 443+-104 750+-62 925+-50",
    ("walker", "walk"): "411+-237 772+-60 432+-222 645+-156 851+-63 273+-162 709+-115 826+-89",
    ("quadruped", "run"): "93+-68 452+-49 158+-64 159+-82 524+-24 162+-140 522+-30 460+-36",
    ("quadruped", "jump"): "89+-47 740+-91 218+-114 123+-67 829+-22 211+-127 790+-38 719+-68",
    ("quadruped", "stand"): "207+-134 910+-45 331+-81 308+-147 953+-16 239+-104 940+-27 867+-61",
    ("quadruped", "walk"): "94+-60 680+-117 171+-72 141+-80 720+-175 125+-36 820+-94 726+-146",
}
TABLE2: dict[tuple[str, str], dict[str, tuple[int, int]]] = {
    task: {
        column: (int(mean), int(std))
        for column, (mean, std) in zip(_COLUMNS, (cell.split("+-") for cell in row.split()), strict=True)
    }
    for task, row in _ROWS.items()
}
"""By (domain, task) and explorer: mean and standard deviation of the return."""
