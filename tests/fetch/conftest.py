import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fetch.keepalive import KeepAliveSite
from tests.fetch.site import Site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as site:
        yield site


@pytest.fixture
async def kept() -> AsyncIterator[KeepAliveSite]:
    """A server that keeps its connections open."""
    async with KeepAliveSite() as site:
        yield site


@pytest.fixture
async def other() -> AsyncIterator[Site]:
    """A second server. The fetcher of `site` may not reach it."""
    async with Site() as site:
        yield site


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for secure.test, with its key in the same file."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed.")
    folder = tmp_path_factory.mktemp("certificate")
    made = folder / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = ["-subj", "/CN=secure.test", "-addext", "subjectAltName=DNS:secure.test"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(made)]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    made.write_text(made.read_text() + (folder / "key.pem").read_text())
    return made


@pytest.fixture
def identity(certificate: Path) -> ssl.SSLContext:
    """A server context with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
async def secure(identity: ssl.SSLContext) -> AsyncIterator[Site]:
    async with Site(identity) as site:
        yield site


@pytest.fixture
async def kept_secure(identity: ssl.SSLContext) -> AsyncIterator[KeepAliveSite]:
    async with KeepAliveSite(identity) as site:
        yield site


@pytest.fixture
def trust(certificate: Path) -> ssl.SSLContext:
    """A client context that trusts this certificate."""
    return ssl.create_default_context(cafile=str(certificate))
