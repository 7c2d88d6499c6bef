import os
import pwd
import stat
from pathlib import Path
from urllib.parse import unquote

import pytest

from batchmill.embedded import EmbeddedServer
from batchmill.errors import EmbeddedError

from .users import ask, is_stopped, needs_root, postmaster, python_as, skip_unless_reachable

CONNECT = "psycopg.connect(sys.argv[1])"
USE_TWICE = """
for _ in range(2):
    with EmbeddedServer(Path(sys.argv[1])) as server, psycopg.connect(server.dsn) as connection:
        print(connection.execute("select session_user").fetchone()[0])
"""


def test_the_server_listens_only_on_a_private_socket(home: Path):
    with EmbeddedServer(home) as server:
        assert ask(server.dsn, "show listen_addresses") == ""
        sockets = home / "socket"
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert stat.S_IMODE((sockets / ".s.PGSQL.5432").stat().st_mode) == 0o700


def test_the_only_rule_admits_only_the_current_user(home: Path):
    rules = "select string_agg(concat_ws(' ', type, auth_method, user_name), ',') from "
    with EmbeddedServer(home) as server:
        assert ask(server.dsn, rules + "pg_hba_file_rules") == "local peer {batchmill}"
        users = "select string_agg(sys_name, ',') from pg_ident_file_mappings"
        assert ask(server.dsn, users) == pwd.getpwuid(os.geteuid()).pw_name


def test_commits_are_durable(home: Path):
    with EmbeddedServer(home) as server:
        assert ask(server.dsn, "show fsync") == "on"
        assert ask(server.dsn, "show synchronous_commit") == "on"


@needs_root
def test_another_user_cannot_reach_the_socket(home: Path):
    with EmbeddedServer(home) as server:
        stranger = next(
            account
            for account in map(pwd.getpwnam, ("nobody", "daemon"))
            if account.pw_uid != (home / "socket").stat().st_uid
        )
        refused = python_as(stranger, CONNECT, server.dsn)
    assert refused.returncode != 0
    assert "Permission denied" in refused.stderr


@needs_root
def test_the_user_that_the_server_runs_as_cannot_connect(home: Path):
    with EmbeddedServer(home) as server:
        runs_as = pwd.getpwuid((home / "socket").stat().st_uid)
        refused = python_as(runs_as, CONNECT, server.dsn)
    assert refused.returncode != 0
    assert "Peer authentication failed" in refused.stderr


@needs_root
def test_a_user_other_than_root_can_use_the_server(directory: Path):
    nobody = pwd.getpwnam("nobody")
    skip_unless_reachable(nobody)
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    home = directory / "home"
    done = python_as(nobody, USE_TWICE, home)
    assert (done.stdout, done.stderr) == ("batchmill\nbatchmill\n", "")
    assert {path.owner() for path in (home, *home.iterdir())} == {"nobody"}
    assert is_stopped(home)


@pytest.mark.parametrize("name", ["long" * 25, "one, two", 'quo"ted'])
def test_a_home_whose_path_is_unfit_for_a_socket_gets_a_private_socket_elsewhere(
    directory: Path, name: str
):
    home = directory / name
    with EmbeddedServer(home) as server:
        assert ask(server.dsn, "select 42") == 42
        sockets = _socket_directory(server)
        assert home not in sockets.parents
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    sockets.rmdir()


def test_a_home_with_characters_special_to_a_shell_works(directory: Path):
    with EmbeddedServer(directory / "it's $HOME `or` \\ not") as server:
        assert ask(server.dsn, "select 42") == 42


def test_a_socket_directory_that_others_can_enter_is_refused(directory: Path):
    server = EmbeddedServer(directory / ("long" * 25))
    sockets = _socket_directory(server)
    sockets.mkdir()
    sockets.chmod(0o755)
    try:
        with pytest.raises(EmbeddedError, match=r"must be a directory that only \w+ can access"):
            server.start()
    finally:
        sockets.rmdir()


def test_a_symlink_instead_of_the_socket_directory_is_refused(directory: Path):
    server = EmbeddedServer(directory / ("long" * 25))
    elsewhere = directory / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    sockets = _socket_directory(server)
    sockets.symlink_to(elsewhere)
    try:
        with pytest.raises(EmbeddedError, match=r"must be a directory that only \w+ can access"):
            server.start()
    finally:
        sockets.unlink()


def test_environment_variables_of_the_caller_do_not_reach_the_server(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PGPORT", "7777")
    monkeypatch.setenv("PGDATA", "/nowhere")
    monkeypatch.setenv("API_KEY", "secret")
    with EmbeddedServer(home) as server:
        assert ask(server.dsn, "show port") == "5432"
        environment = Path(f"/proc/{postmaster(home)}/environ")
        if environment.exists():
            assert b"secret" not in environment.read_bytes()


def _socket_directory(server: EmbeddedServer) -> Path:
    return Path(unquote(server.dsn.partition("host=")[2].partition("&")[0]))
