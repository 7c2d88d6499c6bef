import os
import subprocess
import sys
from pathlib import Path

from batchmill.embedded import EmbeddedServer

from .users import User, ask, execute, is_stopped, postmaster


def test_the_last_process_to_leave_stops_the_server(home: Path):
    with User(home) as first, User(home) as second:
        dsn = first.wait_until_started()
        assert second.wait_until_started() == dsn

        first.leave()
        assert ask(dsn, "select 42") == 42

        second.leave()
        assert is_stopped(home)


def test_processes_that_start_at_the_same_time_share_one_server(new_home: Path):
    users = [User(new_home) for _ in range(5)]
    for user in users:
        assert ask(user.wait_until_started(), "select 42") == 42
    for user in users[1:]:
        user.leave()
    assert not is_stopped(new_home)
    users[0].leave()
    assert is_stopped(new_home)


def test_killing_one_process_does_not_stop_the_server_for_the_others(home: Path):
    with EmbeddedServer(home) as server, User(home) as other:
        other.wait_until_started()
        other.kill()
        assert ask(server.dsn, "select 42") == 42
    assert is_stopped(home)


def test_a_server_keeps_running_after_the_process_that_started_it_is_killed(home: Path):
    with User(home) as starter:
        starter.wait_until_started()
    pid = postmaster(home)
    with EmbeddedServer(home) as server:
        assert ask(server.dsn, "select 42") == 42
        assert postmaster(home) == pid
    assert is_stopped(home)


def test_two_server_objects_in_one_process_count_separately(home: Path):
    with EmbeddedServer(home) as first:
        with EmbeddedServer(home):
            pass
        assert ask(first.dsn, "select 42") == 42


def test_start_and_stop_are_idempotent(home: Path):
    server = EmbeddedServer(home)
    server.stop()
    server.start()
    server.start()
    server.stop()
    assert is_stopped(home)
    server.stop()


def test_data_outlives_the_server(home: Path):
    with EmbeddedServer(home) as server:
        execute(server.dsn, "create table kept as select 42 as n")
    with EmbeddedServer(home) as server:
        assert ask(server.dsn, "select n from kept") == 42


def test_a_forked_child_does_not_count_as_a_user(home: Path):
    """The child does not keep the server running, and its exit does not stop the server."""
    server = EmbeddedServer(home)
    server.start()

    short_lived = os.fork()
    if short_lived == 0:
        server.stop()
        os._exit(0)
    os.waitpid(short_lived, 0)
    assert ask(server.dsn, "select 42") == 42

    read_end, write_end = os.pipe()
    long_lived = os.fork()
    if long_lived == 0:
        os.close(write_end)
        os.read(read_end, 1)
        os._exit(0)
    server.stop()
    assert is_stopped(home)
    os.close(write_end)
    os.waitpid(long_lived, 0)


def test_the_server_stops_when_a_process_exits_without_stopping_it(home: Path):
    code = """
import sys
from pathlib import Path
from batchmill.embedded import EmbeddedServer

EmbeddedServer(Path(sys.argv[1])).start()
"""
    subprocess.run([sys.executable, "-c", code, home], check=True)
    assert is_stopped(home)
