import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from batchmill.embedded import EmbeddedServer, default_home, installation
from batchmill.embedded.installation import installations
from batchmill.errors import EmbeddedError

from .users import ask, needs_root, python_as, skip_unless_reachable

START = """
try:
    EmbeddedServer(Path(sys.argv[1])).start()
except EmbeddedError as error:
    print(error)
"""


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "PACKAGE", "no_such_package")
    monkeypatch.setenv("PATH", "")


@pytest.fixture
def small_disk(directory: Path) -> Iterator[Path]:
    path = directory / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m,mode=711", "tmpfs", path]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", path], check=True)


@pytest.mark.usefixtures("no_package")
def test_the_error_for_missing_programs_says_how_to_install_them(
    new_home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(installation, "DEBIAN", new_home)
    with pytest.raises(EmbeddedError, match=r"pip install 'batchmill\[embedded\]'.*DATABASE_URL"):
        EmbeddedServer(new_home).start()


@pytest.mark.usefixtures("no_package")
def test_programs_of_the_system_are_used_if_the_package_is_missing(new_home: Path):
    if not any(installation.DEBIAN.glob("*/bin/initdb")):
        pytest.skip("Debian's PostgreSQL is not installed")
    with EmbeddedServer(new_home) as server:
        assert ask(server.dsn, "select 42") == 42


def test_data_is_served_by_the_version_that_created_it(
    new_home: Path, monkeypatch: pytest.MonkeyPatch
):
    if not (installation.DEBIAN / "15").exists():
        pytest.skip("Debian's PostgreSQL 15 is not installed")
    with monkeypatch.context() as patch:
        patch.setattr(installation, "PACKAGE", "no_such_package")
        with EmbeddedServer(new_home) as server:
            first = ask(server.dsn, "show server_version")
    with EmbeddedServer(new_home) as server:
        assert ask(server.dsn, "show server_version") == first


def test_data_of_a_version_that_is_not_installed_is_reported(new_home: Path):
    (new_home / "pg99").mkdir(parents=True)
    with pytest.raises(EmbeddedError, match="was created by PostgreSQL 99, which is not installed"):
        EmbeddedServer(new_home).start()


def test_programs_that_are_too_old_are_not_used(new_home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(installation, "OLDEST_MAJOR", 99)
    with pytest.raises(EmbeddedError, match="PostgreSQL is not installed"):
        EmbeddedServer(new_home).start()


def test_a_file_instead_of_a_home_is_reported(directory: Path):
    home = directory / "file"
    home.touch()
    with pytest.raises(EmbeddedError, match=r"cannot use .*file: .* Set BATCHMILL_HOME"):
        EmbeddedServer(home).start()


@needs_root
def test_a_home_that_cannot_be_created_is_reported(directory: Path):
    done = python_as(pwd.getpwnam("nobody"), START, directory / "home")
    assert "home: Permission denied. Set BATCHMILL_HOME to a directory" in done.stdout


@needs_root
def test_a_home_of_another_user_is_refused(new_home: Path):
    new_home.mkdir()
    os.chown(new_home, pwd.getpwnam("nobody").pw_uid, -1)
    with pytest.raises(EmbeddedError, match="belongs to another user"):
        EmbeddedServer(new_home).start()


@needs_root
def test_a_home_that_the_unprivileged_user_cannot_enter_is_reported(
    directory: Path, new_home: Path
):
    directory.chmod(0o700)
    with pytest.raises(EmbeddedError, match=r"who cannot access .*home. Set BATCHMILL_HOME"):
        EmbeddedServer(new_home).start()


@needs_root
def test_programs_that_the_unprivileged_user_cannot_read_are_copied(
    directory: Path, new_home: Path, monkeypatch: pytest.MonkeyPatch
):
    closed = directory / "closed"
    closed.mkdir(mode=0o700)
    _copy_package(closed)
    monkeypatch.syspath_prepend(str(closed))
    with EmbeddedServer(new_home) as server:
        assert ask(server.dsn, "select 42") == 42
        programs = Path(ask(server.dsn, "select setting from pg_config where name = 'BINDIR'"))
    assert new_home in programs.parents


@needs_root
def test_a_user_id_without_a_name_is_reported(directory: Path):
    nameless = pwd.struct_passwd(("nameless", "", 54321, 54321, "", "/", ""))
    skip_unless_reachable(nameless)
    os.chown(directory, 54321, 54321)
    done = python_as(nameless, START, directory / "home")
    assert done.stdout.startswith("The user id 54321 has no name on this system")


def test_a_full_disk_is_reported_and_does_not_prevent_a_later_start(small_disk: Path):
    home = small_disk / "home"
    with pytest.raises(EmbeddedError, match=r"The disk that holds .* is full"):
        EmbeddedServer(home).start()
    subprocess.run(["mount", "-o", "remount,size=200m", small_disk], check=True)
    with EmbeddedServer(home) as server:
        assert ask(server.dsn, "select 42") == 42


def test_a_disk_that_fills_up_after_the_first_start_is_reported(small_disk: Path):
    subprocess.run(["mount", "-o", "remount,size=200m", small_disk], check=True)
    home = small_disk / "home"
    with EmbeddedServer(home):
        pass
    _fill(small_disk / "ballast")
    with pytest.raises(EmbeddedError, match=r"The disk that holds .* is full"):
        EmbeddedServer(home).start()
    (small_disk / "ballast").unlink()
    with EmbeddedServer(home) as server:
        assert ask(server.dsn, "select 42") == 42


def test_the_error_on_windows_recommends_database_url(
    new_home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(EmbeddedError, match="does not run on Windows. Set DATABASE_URL"):
        EmbeddedServer(new_home).start()


def test_the_default_home_depends_on_the_user(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_home() == Path("/var/lib/batchmill")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert default_home().name == "batchmill"
    assert default_home().parent != Path("/var/lib")


def _copy_package(target: Path) -> None:
    package = next(installations()).programs.parents[1]
    shutil.copytree(package, target / package.name)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name)


def _fill(path: Path) -> None:
    with path.open("wb") as file:
        try:
            while True:
                file.write(bytes(1024 * 1024))
                file.flush()
        except OSError:
            pass
