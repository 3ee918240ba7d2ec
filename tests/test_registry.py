"""Plug-ins are found by file, and only one may have a name."""

from __future__ import annotations

from pathlib import Path

import pytest

import rewardfree as rf
from rewardfree import registry
from rewardfree.interfaces import Explorer

PLUGIN = '''
from rewardfree.explorers.random import Random as Base

class Lazy(Base):
    """Does the same."""
'''


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REWARDFREE_PLUGINS", str(tmp_path))
    (tmp_path / "explorers").mkdir()
    return tmp_path / "explorers"


def test_a_file_is_a_plug_in_under_its_own_name(plugins: Path) -> None:
    (plugins / "quite_lazy.py").write_text(PLUGIN)
    (plugins / "_helper.py").write_text("raise RuntimeError")
    assert "quite-lazy" in registry.names("explorer")
    assert not [name for name in registry.names("explorer") if "helper" in name]
    cls = registry.load("explorer", "quite-lazy")
    assert issubclass(cls, Explorer)
    assert registry.name_of(cls()) == "quite-lazy"
    assert registry.from_json("explorer", registry.to_json(cls())) == cls()


def test_two_files_of_one_name_raise(plugins: Path) -> None:
    (plugins / "random.py").write_text(PLUGIN)
    with pytest.raises(rf.UserError, match="two explorers are called 'random'"):
        registry.names("explorer")


def test_a_file_must_hold_one_class_of_its_role(plugins: Path) -> None:
    (plugins / "empty.py").write_text("x = 1\n")
    with pytest.raises(rf.UserError, match="must define one class that inherits from Explorer"):
        registry.load("explorer", "empty")


def test_unknown_names_show_near_ones() -> None:
    with pytest.raises(rf.UserError, match="unknown planner 'ddpg-twim'; did you mean ddpg-twin"):
        registry.load("planner", "ddpg-twim")


def test_a_config_of_another_version_is_a_clear_error() -> None:
    with pytest.raises(rf.UserError, match="does not fit"):
        registry.from_json("explorer", {"name": "gfa-rfe", "no_such_field": 1})


def test_every_plug_in_explains_itself_in_one_line() -> None:
    for role in registry.ROLES:
        for name in registry.names(role):
            assert registry.summary(registry.load(role, name))
