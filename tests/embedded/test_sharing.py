import os
import subprocess
import sys
from pathlib import Path

from batchmill.embedded import EmbeddedServer

from .users import User, ask, execute, is_stopped, postmaster


def test_the_last_of_two_processes_stops_the_server(home: Path):
    with User(home) as first, User(home) as second:
        dsn = first.wait_until_started()
        assert second.wait_until_started() == dsn

        first.leave()
        assert ask(dsn, "select 42") == 42

        second.leave()
        assert is_stopped(home)


def test_processes_that_start_at_once_get_one_server(new_home: Path):
    users = [User(new_home) for _ in range(5)]
    for user in users:
        assert ask(user.wait_until_started(), "select 42") == 42
    for user in users[1:]:
        user.leave()
    assert not is_stopped(new_home)
    users[0].leave()
    assert is_stopped(new_home)


def test_killing_a_user_leaves_the_server_to_the_others(home: Path):
    with EmbeddedServer(home) as server, User(home) as other:
        other.wait_until_started()
        other.kill()
        assert ask(server.dsn, "select 42") == 42
    assert is_stopped(home)


def test_a_server_whose_starter_was_killed_is_used_again(home: Path):
    with User(home) as starter:
        starter.wait_until_started()
    pid = postmaster(home)
    with EmbeddedServer(home) as server:
        assert ask(server.dsn, "select 42") == 42
        assert postmaster(home) == pid
    assert is_stopped(home)


def test_two_servers_in_one_process_are_two_users(home: Path):
    with EmbeddedServer(home) as first:
        with EmbeddedServer(home):
            pass
        assert ask(first.dsn, "select 42") == 42


def test_starting_and_stopping_twice_is_the_same_as_once(home: Path):
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


def test_a_forked_child_is_no_user(home: Path):
    """Neither does it keep the server running, nor does its end stop it."""
    server = EmbeddedServer(home)
    server.start()

    leaves_at_once = os.fork()
    if leaves_at_once == 0:
        server.stop()
        os._exit(0)
    os.waitpid(leaves_at_once, 0)
    assert ask(server.dsn, "select 42") == 42

    told, tell = os.pipe()
    stays = os.fork()
    if stays == 0:
        os.close(tell)
        os.read(told, 1)
        os._exit(0)
    server.stop()
    assert is_stopped(home)
    os.close(tell)
    os.waitpid(stays, 0)


def test_a_process_that_forgets_to_stop_stops_at_exit(home: Path):
    code = """
import sys
from pathlib import Path
from batchmill.embedded import EmbeddedServer

EmbeddedServer(Path(sys.argv[1])).start()
"""
    subprocess.run([sys.executable, "-c", code, home], check=True)
    assert is_stopped(home)
