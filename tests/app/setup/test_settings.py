from __future__ import annotations

from pathlib import Path

import pytest

from app.setup.profiles import PROFILES
from app.setup.settings import load_settings, paths
from indexes.errors import SettingError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUOTEWRIGHT_HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    return tmp_path


def write_toml(home: Path, text: str) -> None:
    (home / "data" / "settings.toml").write_text(text)


def test_the_defaults_are_the_laptop_profile_with_the_trie() -> None:
    settings = load_settings()
    assert settings.resolved() == PROFILES["laptop"]
    assert (settings.drafter, settings.max_nodes, settings.max_new_tokens) == ("blend", None, 160)
    assert (settings.candidates, settings.min_span_words, settings.index) == (100, 3, "python-docs")
    assert (settings.device, settings.dtype) == ("auto", "auto")
    assert settings.node_budget == "adaptive"


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_profile(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_toml(home, 'model = "file"\nencoder = "file"\nreranker = "file"\n')
    monkeypatch.setenv("QUOTEWRIGHT_MODEL", "environment")
    monkeypatch.setenv("QUOTEWRIGHT_ENCODER", "environment")
    profile = load_settings(model="flag", top_k=None).resolved()
    assert (profile.model, profile.encoder, profile.reranker, profile.top_k) == ("flag", "environment", "file", 3)


def test_an_empty_variable_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTEWRIGHT_TOP_K", "")
    assert load_settings().resolved().top_k == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [("top_k", 0), ("top_k", 101), ("max_nodes", -1), ("max_new_tokens", 0), ("candidates", 0), ("chunk_chars", 99)],
)
def test_a_value_out_of_range_is_named(name: str, value: int) -> None:
    with pytest.raises(SettingError, match=f"{name} = {value}: Input should be"):
        load_settings(**{name: value})


def test_a_variable_that_is_no_number_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTEWRIGHT_MAX_NODES", "many")
    with pytest.raises(SettingError, match="max_nodes = 'many'"):
        load_settings()


def test_an_unknown_node_budget_names_the_known_ones() -> None:
    with pytest.raises(SettingError, match="node_budget = 'huge': Input should be 'adaptive' or 'fixed'"):
        load_settings(node_budget="huge")


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(SettingError, match="unknown profile 'huge'; choose one of laptop, desktop, gpu"):
        load_settings(profile="huge").resolved()


def test_a_misspelled_setting_in_the_file_is_named(home: Path) -> None:
    write_toml(home, 'drafer = "plain"\n')
    with pytest.raises(SettingError, match="drafer"):
        load_settings()


@pytest.mark.parametrize("data", [b"drafter = ", b"\xff\xfe", b"[[["])
def test_a_file_that_is_no_toml_is_named(home: Path, data: bytes) -> None:
    (home / "data" / "settings.toml").write_bytes(data)
    with pytest.raises(SettingError, match=r"settings\.toml cannot be read"):
        load_settings()


def test_everything_lies_below_the_home_that_was_set(home: Path) -> None:
    found = paths()
    assert (found.indexes, found.uploads, found.models) == (
        home / "data" / "indexes", home / "data" / "uploads", home / "cache" / "models",
    )  # fmt: skip


def test_a_home_of_a_user_who_does_not_exist_is_a_plain_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTEWRIGHT_HOME", "~nobody-of-that-name")
    assert paths().data == Path.cwd() / "~nobody-of-that-name" / "data"
