"""Which fonts and libraries this machine has. Asks fontconfig, as the layout does, but does not
load WeasyPrint."""

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from ctypes import POINTER, byref, c_char_p, c_int, c_uint32, c_void_p
from functools import cache

# The names on Linux and macOS.
LIBRARIES = {
    "Pango": ("libpango-1.0.so.0", "libpango-1.0.dylib"),
    "PangoFT2": ("libpangoft2-1.0.so.0", "libpangoft2-1.0.dylib"),
    "HarfBuzz Subset": ("libharfbuzz-subset.so.0", "libharfbuzz-subset.0.dylib"),
}
FONTCONFIG = ("libfontconfig.so.1", "libfontconfig.1.dylib")
# Of the designs, and for Arabic, which programs can extract from this one only.
FAMILIES = ("Inter", "Lato", "Roboto", "Linux Libertine O", "Noto Naskh Arabic")
# The formats that Pango uses. It ignores bitmaps and Type 1.
FORMATS = frozenset({b"TrueType", b"CFF"})
SCRIPTS = {
    "Latin": "aéłş",
    "Greek": "αω",
    "Cyrillic": "бїў",
    "Arabic": "عپ",
    "Hebrew": "אש",
    "Chinese": "简繁",
    "Japanese": "あカ",
    "Korean": "한글",
}


class FontSet(ctypes.Structure):
    _fields_ = (("count", c_int), ("room", c_int), ("patterns", POINTER(c_void_p)))


def check_fonts() -> tuple[str, ...]:
    """What is missing, and `bin/install-servers apps` installs. Without a library there is no PDF.
    Without a font, pages look different, or show boxes instead of letters."""
    missing = [f"the library {name}" for name, files in LIBRARIES.items() if not library(*files)]
    if library(*FONTCONFIG) is None:
        return (*missing, "the library Fontconfig")
    installed = frozenset(family for family, _ in fonts())
    missing += [f"the font {family}" for family in FAMILIES if family not in installed]
    missing += [
        f"a font for {script}"
        for script, letters in SCRIPTS.items()
        if not all(map(is_covered, letters))
    ]
    return tuple(missing)


def is_covered(letter: str) -> bool:
    """Whether any font has a character."""
    fontconfig = library(*FONTCONFIG)
    return fontconfig is not None and any(
        fontconfig.FcCharSetHasChar(letters, ord(letter)) for _, letters in fonts()
    )


@cache
def fonts() -> tuple[tuple[str, c_void_p], ...]:
    """The family and the characters of every font. Fontconfig keeps the characters in memory."""
    fontconfig = library(*FONTCONFIG)
    return tuple(found(fontconfig)) if fontconfig else ()


def found(fontconfig: ctypes.CDLL) -> Iterator[tuple[str, c_void_p]]:
    fontconfig.FcConfigGetCurrent.restype = c_void_p
    fontconfig.FcConfigGetFonts.restype = POINTER(FontSet)
    fontconfig.FcConfigGetFonts.argtypes = (c_void_p, c_int)
    fontconfig.FcPatternGetString.argtypes = (c_void_p, c_char_p, c_int, POINTER(c_char_p))
    fontconfig.FcPatternGetCharSet.argtypes = (c_void_p, c_char_p, c_int, POINTER(c_void_p))
    fontconfig.FcCharSetHasChar.argtypes = (c_void_p, c_uint32)
    every = fontconfig.FcConfigGetFonts(fontconfig.FcConfigGetCurrent(), 0)
    if not every:
        return
    for pattern in every.contents.patterns[: every.contents.count]:
        form, family, letters = c_char_p(), c_char_p(), c_void_p()
        fontconfig.FcPatternGetString(pattern, b"fontformat", 0, byref(form))
        fontconfig.FcPatternGetString(pattern, b"family", 0, byref(family))
        fontconfig.FcPatternGetCharSet(pattern, b"charset", 0, byref(letters))
        if form.value in FORMATS and family.value and letters:
            yield family.value.decode(errors="replace"), letters


@cache
def library(*names: str) -> ctypes.CDLL | None:
    for name in names:
        with suppress(OSError):
            return ctypes.CDLL(name)
    return None
