"""The code in the documentation runs: only budgets are cut."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rewardfree import pipeline
from rewardfree.cli import main
from rewardfree.pages import pages

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
GENERATED = {"docs/explorers.md": "explorers", "docs/exact-algorithms.md": "algorithms"}
SMALL_GRID = (
    "--size tiny --frames 1000 --updates 250 --seeds 1 --explorers random --domains point_mass_maze"
    " --tasks reach_top_left --planners ddpg-twin"
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def short(code: str) -> str:
    """The same code with small budgets."""
    code = code.replace("100_000", "2_000").replace("100000", "2000")
    code = re.sub(r"^(rewardfree plan .*)$", r"\1 --updates 2", code, flags=re.MULTILINE)
    return re.sub(r"^(rewardfree bench table2 .*)$", rf"\1 {SMALL_GRID}", code, flags=re.MULTILINE)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which plans take two updates unless told otherwise."""
    monkeypatch.chdir(tmp_path)
    defaults = pipeline.plan.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "updates", 2)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("REWARDFREE_PLUGINS", str(tmp_path / "plugins"))
    return tmp_path


def run_shell(code: str) -> None:
    """Every line of a shell block: our commands in this process, make's dry, scripts as far as help."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] == "rewardfree":
            assert main(words[1:]) == 0, line
        elif words[0] == "make":
            subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
        elif words[0] == "python":
            help_ = (
                [sys.executable, *words[1:3], "--help"]
                if words[1] == "-m"
                else [sys.executable, words[1], "--help"]
            )
            subprocess.run(help_, cwd=ROOT, check=True, capture_output=True)
        else:
            pytest.fail(f"a command that is not tested: {line}")


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs(page: str, workplace: Path) -> None:
    for language, code in blocks(page):
        if language == "python":
            file = re.match(r"# (plugins/\S+\.py)\n", code)
            if file:  # a plug-in to be saved under that name
                (workplace / file[1]).parent.mkdir(parents=True, exist_ok=True)
                (workplace / file[1]).write_text(code, encoding="utf-8")
            else:
                exec(compile(short(code), page, "exec"), {})
        elif language == "sh":
            run_shell(short(code))
        else:
            assert language == "text", f"{page}: a block in '{language}' is not tested"


def test_the_readme_has_what_a_newcomer_needs() -> None:
    code = "\n".join(text for _, text in blocks("README.md"))
    for needed in ("make demo", "make test", "rf.explore(", "rewardfree inspect"):
        assert needed in code


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"


@pytest.mark.parametrize(("page", "role"), GENERATED.items())
def test_generated_pages_are_what_the_code_says(page: str, role: str) -> None:
    """After a change: rewardfree list ROLE > PAGE."""
    assert (ROOT / page).read_text(encoding="utf-8") == pages(role)


EXAMPLES = {
    "rf_ucrl_figure_2.py": ["--runs", "2", "--budgets", "2", "--most", "2.5"],
    "rf_ucrl_figure_3.py": ["--side", "5", "--transitions", "200"],
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_draws_its_figure(name: str, tmp_path: Path) -> None:
    out = tmp_path / "figure.png"
    command = [sys.executable, str(ROOT / "examples" / name), *EXAMPLES[name], "--out", str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "uniform" in done.stdout
    assert out.read_bytes().startswith(b"\x89PNG")
