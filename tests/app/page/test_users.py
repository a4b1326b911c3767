from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.page.users import Users
from indexes.errors import SettingError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def users(tmp_path: Path) -> Users:
    return Users(tmp_path / "users")


def test_only_the_right_password_opens(users: Users) -> None:
    users.add("anna", "correct horse")
    assert users.check("anna", "correct horse")
    assert not users.check("anna", "correct horsf")
    assert not users.check("anna", "")


def test_capitals_of_a_name_do_not_count(users: Users) -> None:
    users.add("Anna", "correct horse")
    assert users.names() == ["anna"]
    assert users.check("ANNA", "correct horse")
    assert users.token("aNNa") == users.token("anna")


@pytest.mark.parametrize("name", ["", "nobody", "../anna", "\udc80", "a" * 10_000])
def test_a_name_that_nobody_has_opens_nothing(users: Users, name: str) -> None:
    users.add("anna", "correct horse")
    assert not users.check(name, "correct horse")


def test_a_password_of_lone_surrogates_or_endless_length_is_only_wrong(users: Users) -> None:
    users.add("anna", "correct horse")
    assert not users.check("anna", "\udc80" * 10)
    assert not users.check("anna", "x" * 10**7)


def test_the_folder_holds_no_password_and_is_for_its_owner_alone(users: Users, tmp_path: Path) -> None:
    users.add("anna", "correct horse")
    assert "correct" not in (tmp_path / "users" / "users.json").read_text()
    assert (tmp_path / "users").stat().st_mode & 0o077 == 0


def test_equal_passwords_have_different_hashes(users: Users, tmp_path: Path) -> None:
    users.add("anna", "correct horse")
    users.add("ben", "correct horse")
    first, second = json.loads((tmp_path / "users" / "users.json").read_text())
    assert first["hash"] != second["hash"]


def test_a_new_password_leaves_a_user_who_they_are(users: Users) -> None:
    assert users.add("anna", "correct horse")
    token = users.token("anna")
    assert not users.add("anna", "battery staple")
    assert users.token("anna") == token
    assert not users.check("anna", "correct horse")


def test_who_is_added_again_inherits_nothing(users: Users) -> None:
    users.add("anna", "correct horse")
    token = users.token("anna")
    users.remove("anna")
    users.add("anna", "correct horse")
    assert users.token("anna") != token


def test_a_removed_user_is_nobody(users: Users) -> None:
    users.add("anna", "correct horse")
    users.remove("anna")
    assert not users.check("anna", "correct horse")
    with pytest.raises(SettingError, match="not among the users"):
        users.token("anna")
    with pytest.raises(SettingError, match="there is no user 'anna'; there are: none"):
        users.remove("anna")


@pytest.mark.parametrize("name", ["", "a b", "../x", "a/b", ".hidden", "é", "a" * 65])
def test_names_that_cannot_be_are_refused(users: Users, name: str) -> None:
    with pytest.raises(SettingError, match="cannot be a user's name"):
        users.add(name, "correct horse")


@pytest.mark.parametrize("password", ["", "short77", "x" * 1001])
def test_passwords_too_short_or_too_long_are_refused(users: Users, password: str) -> None:
    with pytest.raises(SettingError, match="8 to 1000 characters"):
        users.add("anna", password)


def test_a_damaged_file_lets_nobody_in_and_says_so(users: Users, tmp_path: Path) -> None:
    users.add("anna", "correct horse")
    (tmp_path / "users" / "users.json").write_text('[{"name": "anna"}]')
    with pytest.raises(SettingError, match=r"users\.json cannot be read"):
        users.check("anna", "correct horse")


def test_the_command_line_adds_lists_and_removes_users(tmp_path: Path) -> None:
    environment = {**os.environ, "QUOTEWRIGHT_HOME": str(tmp_path)}

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "app.py", "users", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, input=stdin, capture_output=True, text=True)

    assert run("add", "Anna", stdin="correct horse\n").returncode == 0
    assert Users(tmp_path / "data" / "users").check("anna", "correct horse")
    assert json.loads(run("list", "--json").stdout) == {"users": ["anna"]}
    assert run("remove", "anna").returncode == 0
    refused = run("remove", "anna")
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    assert "there is no user 'anna'" in refused.stderr
