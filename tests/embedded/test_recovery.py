import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from batchmill.embedded import EmbeddedServer
from batchmill.embedded.lock import FileLock
from batchmill.errors import EmbeddedError

from .users import User, ask, execute, is_stopped, postmaster

BUSY = "select count(*) from pg_stat_activity where state = 'active' and query like '%as busy'"


def test_a_killed_server_recovers_committed_data(home: Path):
    with EmbeddedServer(home) as server:
        execute(server.dsn, "create table recovered as select 42 as n")
        os.kill(postmaster(home), signal.SIGKILL)
    with EmbeddedServer(home) as server:
        assert ask(server.dsn, "select n from recovered") == 42


def test_a_killed_server_is_replaced_only_after_its_last_process_has_exited(home: Path):
    with EmbeddedServer(home) as server:
        execute(server.dsn, "create table replaced as select 42 as n")
        busy = psycopg.connect(server.dsn)
        busy.pgconn.send_query(b"select count(*) from generate_series(1, 5000000) as busy")
        while ask(server.dsn, BUSY) == 0:
            pass
        os.kill(postmaster(home), signal.SIGKILL)
        with EmbeddedServer(home) as replacement:
            assert ask(replacement.dsn, "select n from replaced") == 42
        busy.close()


def test_the_pid_file_of_a_dead_server_does_not_prevent_a_start(home: Path):
    with EmbeddedServer(home):
        pass
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    _write_pid_files(home, gone.pid)
    with EmbeddedServer(home) as server:
        assert ask(server.dsn, "select 42") == 42


def test_another_program_with_the_old_process_id_is_not_taken_for_the_server_and_not_killed(
    home: Path,
):
    with EmbeddedServer(home):
        pass
    owner = (home / "socket").stat().st_uid if os.geteuid() == 0 else None
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, user=owner) as other_program:
        _write_pid_files(home, other_program.pid)
        with EmbeddedServer(home) as server:
            assert ask(server.dsn, "select 42") == 42
            assert postmaster(home) != other_program.pid
        assert other_program.poll() is None


def test_a_cluster_whose_creation_was_interrupted_is_created_again(new_home: Path):
    with EmbeddedServer(new_home):
        pass
    (data,) = new_home.glob("pg[0-9]*")
    unfinished = data.rename(data.with_suffix(".new"))
    (unfinished / "global" / "pg_control").unlink()
    with EmbeddedServer(new_home) as server:
        assert ask(server.dsn, "select 42") == 42
    assert not unfinished.exists()


def test_a_server_that_does_not_answer_is_reported(home: Path, monkeypatch: pytest.MonkeyPatch):
    with User(home) as user:
        user.wait_until_started()
        pid = postmaster(home)
        os.kill(pid, signal.SIGSTOP)
        try:
            monkeypatch.setattr(EmbeddedServer, "patience", 0)
            with pytest.raises(EmbeddedError, match=r"did not answer within 0 seconds"):
                EmbeddedServer(home).start()
        finally:
            os.kill(pid, signal.SIGCONT)
        user.leave()
    assert is_stopped(home)


def test_a_cluster_that_initdb_is_still_creating_is_not_touched(
    new_home: Path, monkeypatch: pytest.MonkeyPatch
):
    new_home.mkdir(mode=0o711)
    with FileLock(new_home / "running.lock") as held_by_initdb:
        held_by_initdb.take()
        monkeypatch.setattr(EmbeddedServer, "patience", 0)
        with pytest.raises(EmbeddedError, match=r"did not answer within 0 seconds"):
            EmbeddedServer(new_home).start()
    assert not any(new_home.glob("pg*"))


def test_the_error_of_a_server_that_cannot_start_has_the_reason(new_home: Path):
    with EmbeddedServer(new_home) as server:
        execute(server.dsn, "alter system set shared_preload_libraries = 'no_such_library'")
    with pytest.raises(EmbeddedError, match=r'(?s)could not be started.*"no_such_library"'):
        EmbeddedServer(new_home).start()


def _write_pid_files(home: Path, pid: int) -> None:
    (data,) = home.glob("pg[0-9]*")
    owner = data.stat()
    for stale in (data / "postmaster.pid", home / "socket" / ".s.PGSQL.5432.lock"):
        stale.write_text(f"{pid}\n{data}\n1700000000\n5432\n{home / 'socket'}\n\n 0 0\nready   \n")
        stale.chmod(0o600)
        if os.geteuid() == 0:
            os.chown(stale, owner.st_uid, owner.st_gid)
