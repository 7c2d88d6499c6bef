from apps.resumes.rendering.glyphs import warning_of
from tests.apps.resumes.rendering.papers import DOCUMENTS, made, paper

# Of private use areas: no font of Debian has them.
UNKNOWN = "\U000f0000"


def test_characters_without_a_glyph_are_named_by_number():
    rendered = made({"basics": {"name": f"Ann {UNKNOWN}", "summary": UNKNOWN * 3}})
    assert rendered.warnings == (
        "No installed font has the character U+F0000. The PDF shows a box in its place.",
    )


def test_many_are_counted():
    letters = [chr(ord(UNKNOWN) + n) for n in range(15)]
    assert warning_of(letters) == (
        "No installed font has the characters "
        + ", ".join(f"U+{0xF0000 + n:X}" for n in range(10))
        + " and 5 more. The PDF shows boxes in their place."
    )


def test_the_installed_fonts_have_all_letters_of_the_samples():
    for name in DOCUMENTS:
        assert "font" not in " ".join(paper(name).rendered.warnings)


def test_invisible_characters_need_no_glyph():
    summary = "a\u200bb\u2060c\u200d\ufe0f \u202eabc\u202c soft\xadhyphen no\xa0break"
    assert made({"basics": {"name": "X", "summary": summary}}).warnings == ()
