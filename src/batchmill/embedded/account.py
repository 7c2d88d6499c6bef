"""The user that runs the server's processes, and what that user can reach."""

import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from batchmill.errors import EmbeddedError

if sys.platform != "win32":
    import pwd
    from pwd import struct_passwd as Account

UNPRIVILEGED_NAMES = ("batchmill", "postgres", "nobody")

# A clean environment keeps PG* variables from the server, and root's secrets from another user.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def current() -> "Account":
    return _by_id(os.geteuid())


def for_server(data: Path) -> "Account":
    """The current user; for root, the owner of the data, or the first unprivileged user."""
    if not is_root():
        return current()
    if data.exists():
        return _by_id(data.stat().st_uid)
    for name in UNPRIVILEGED_NAMES:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise EmbeddedError(
        "PostgreSQL refuses to run as root, and no other user was found to run it. Create a "
        "user named batchmill, or set DATABASE_URL to your own server."
    )


def run_as(
    account: "Account", command: Sequence[str | Path], **options: Any
) -> subprocess.CompletedProcess[str]:
    defaults = {
        "input": "",
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "env": ENVIRONMENT,
    }
    options = defaults | identity(account) | options
    return subprocess.run(command, check=False, text=True, cwd="/", **options)


def identity(account: "Account") -> dict[str, Any]:
    """The subprocess options that switch to this user, if it is not the current one."""
    if account.pw_uid == os.geteuid():
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def can_execute(account: "Account", path: Path) -> bool:
    try:
        return run_as(account, ["/bin/sh", "-c", 'test -x "$0"', path]).returncode == 0
    except PermissionError:
        return False


def make_home(home: Path) -> None:
    is_new = not home.exists()
    home.mkdir(parents=True, exist_ok=True)
    if is_new:
        home.chmod(0o711 if is_root() else 0o700)
    if home.stat().st_uid != os.geteuid():
        raise EmbeddedError(
            f"{home} belongs to another user. Run as that user, or set BATCHMILL_HOME to a "
            "directory of your own."
        )


def make_private(path: Path, account: "Account") -> None:
    """Creates a directory that only `account` can enter. An existing one must be private."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    known = found.st_uid in (os.geteuid(), account.pw_uid)
    if not stat.S_ISDIR(found.st_mode) or not known or found.st_mode & 0o077:
        raise EmbeddedError(
            f"{path} must be a directory that only {account.pw_name} can access. Remove it and "
            "try again."
        )
    if found.st_uid != account.pw_uid:
        os.chown(path, account.pw_uid, account.pw_gid)


def _by_id(user_id: int) -> "Account":
    try:
        return pwd.getpwuid(user_id)
    except KeyError:
        raise EmbeddedError(
            f"The user id {user_id} has no name on this system, and PostgreSQL needs one. Add "
            "it to /etc/passwd, or set DATABASE_URL to your own server."
        ) from None
