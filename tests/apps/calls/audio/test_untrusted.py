"""Files that name other files and URLs. ffmpeg must not open those: an attacker could read them."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from apps.calls.audio import NotAudio
from tests.apps.calls.audio.recordings import Recordings, extracted


class Web:
    """A server on the loopback interface that counts requests."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.append(self.path)
                self.send_error(404)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/sound"


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    thread = threading.Thread(target=web.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield web
    web.server.shutdown()
    thread.join()
    web.server.server_close()


Script = Callable[[str], str]


def hls(url: str) -> str:
    part = f"#EXTINF:6.0,\n{url}\n"
    return f"#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-MEDIA-SEQUENCE:0\n{part}#EXT-X-ENDLIST\n"


def concat(url: str) -> str:
    return f"ffconcat version 1.0\nfile '{url}'\n"


def dash(url: str) -> str:
    return (
        '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
        'mediaPresentationDuration="PT6S"><Period><AdaptationSet mimeType="audio/mp4">'
        f'<Representation id="1" bandwidth="1"><BaseURL>{url}</BaseURL></Representation>'
        "</AdaptationSet></Period></MPD>"
    )


def sdp(_: str) -> str:
    return "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=audio 5004 RTP/AVP 0\n"


def opened_plainly(source: Path) -> bool:
    """Whether ffprobe can read the file without the precautions of this application."""
    command = ["ffprobe", "-v", "quiet", "-protocol_whitelist", "file,http,tcp", f"file:{source}"]
    return not subprocess.run(command).returncode


@pytest.mark.parametrize("name", ["call.m3u8", "call.wav", "call.mp3", "call.mp4"])
@pytest.mark.parametrize("script", [hls, concat, dash, sdp])
def test_nothing_is_requested(
    script: Script, name: str, recordings: Recordings, web: Web, target: Path
):
    source = recordings.written(f"{script.__name__}-{name}", script(web.url + ".ts").encode())
    with pytest.raises(NotAudio):
        extracted(source, target)
    assert web.requests == []
    assert not target.exists()


def test_without_precautions_ffmpeg_sends_requests(recordings: Recordings, web: Web):
    opened_plainly(recordings.written("plain.m3u8", hls(web.url + ".ts").encode()))
    assert web.requests


@pytest.mark.parametrize("script", [hls, concat])
def test_local_files_are_not_read(script: Script, recordings: Recordings, target: Path):
    sound = recordings.tones("secret.ts", "-c:a", "mp2")
    for other in (sound.name, str(sound), "/etc/passwd", f"file:{sound}"):
        source = recordings.written("playlist.m3u8", script(other).encode())
        with pytest.raises(NotAudio):
            extracted(source, target)
        assert not target.exists()


@pytest.mark.parametrize("script", [hls, concat])
def test_without_precautions_ffmpeg_reads_local_files(script: Script, recordings: Recordings):
    sound = recordings.tones("secret.ts", "-c:a", "mp2")
    assert opened_plainly(recordings.written("plain.txt", script(sound.name).encode()))


def test_a_playlist_inside_an_avi_is_not_read(recordings: Recordings, web: Web, target: Path):
    """An attack of 2016: subtitles in an AVI that are a playlist."""
    text = hls(web.url + ".ts").encode()
    source = recordings.video("with-text.avi").read_bytes()
    gab2 = b"GAB2\0\2\0" + bytes(6) + len(text).to_bytes(4, "little") + text
    chunk = b"00tx" + len(gab2).to_bytes(4, "little") + gab2
    movi = source.index(b"movi") + 4
    attack = recordings.written("attack.avi", source[:movi] + chunk + source[movi:])
    extracted(attack, target)
    assert web.requests == []
