import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill import BadResponse
from batchmill.fetch.decoder import STEP, Decoder, Gunzip, decoder_for


def pieces(decoder: Decoder, *inputs: bytes) -> list[bytes]:
    taken: list[bytes] = []
    for data in inputs:
        decoder.feed(data)
        while piece := decoder.take():
            taken.append(piece)
    return taken


@given(
    members=st.lists(st.binary(max_size=200) | st.integers(0, 300_000).map(bytes), min_size=1),
    size=st.integers(1, 70_000),
)
def test_gunzip_restores_the_data_for_any_split(members: list[bytes], size: int):
    packed = b"".join(map(gzip.compress, members))
    cut = [packed[at : at + size] for at in range(0, len(packed), size)]
    decoder = Gunzip()
    assert b"".join(pieces(decoder, *cut)) == b"".join(members)
    assert decoder.is_complete


def test_decompressed_pieces_have_a_maximum_size():
    decoder = Gunzip()
    sizes = [len(piece) for piece in pieces(decoder, gzip.compress(bytes(50 * STEP + 1)))]
    assert max(sizes) <= STEP
    assert sum(sizes) == 50 * STEP + 1


def test_truncated_data_is_not_complete():
    decoder = Gunzip()
    pieces(decoder, gzip.compress(b"hello", mtime=0)[:-1])
    assert not decoder.is_complete


def test_empty_data_is_complete():
    assert Gunzip().is_complete


@pytest.mark.parametrize(
    "data", [b"hello", zlib.compress(b"hello"), gzip.compress(b"a", mtime=0) + b"rest"]
)
def test_data_that_is_not_gzip_is_refused(data: bytes):
    with pytest.raises(BadResponse, match="not valid gzip"):
        pieces(Gunzip(), data)


@pytest.mark.parametrize("encoding", ["", "identity", " Identity "])
def test_unencoded_data_is_unchanged(encoding: str):
    assert pieces(decoder_for(encoding), b"a", b"b") == [b"a", b"b"]


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "compress"])
def test_an_unsupported_encoding_is_refused(encoding: str):
    with pytest.raises(BadResponse, match="not requested"):
        decoder_for(encoding)
