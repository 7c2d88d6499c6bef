"""Which texts become links."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.resumes.document import mail_link, read, safe_link


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("https://example.com/a?b=c#d", "https://example.com/a?b=c#d"),
        ("HTTP://example.com", "HTTP://example.com"),
        ("https://例え.example/道", "https://例え.example/道"),
        ("http://[2001:db8::1]/", "http://[2001:db8::1]/"),
        ("http://localhost:8000/", "http://localhost:8000/"),
        ("mailto:tilda@quillfeather.example", "mailto:tilda@quillfeather.example"),
        ("example.com", "https://example.com"),
        ("www.linkedin.example/in/tilda", "https://www.linkedin.example/in/tilda"),
    ],
)
def test_links(text: str, link: str):
    assert safe_link(text) == link


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:alert(1)",
        "tel:5550142",
        "java\nscript:alert(1)",
        "java\tscript:x",
        "\x01javascript:x",
        "javascript://example.com/%0a",
        "file:///etc/passwd",
        "FILE:/etc/passwd",
        "/etc/passwd",
        "//example.com",
        "\\\\server\\share",
        "data:text/html,<b>",
        "vbscript:x",
        "blob:https://example.com",
        "view-source:http://a.example",
        "http:///etc/passwd",
        "http:",
        "https://",
        "http://[::1",
        "https:example.com",
        "ftp://a.example",
        "https://example.com/a b",
        "https://exa\nmple.com",
        "http:\\\\example.com",
        "https://example.com\\@a.example",
        "upon request",
        "mailto:",
        "mailto:a@b",
        "mailto:a@c.example?attach=/etc/passwd",
        "localhost",
        "a@c.example",
    ],
)
def test_texts(text: str | None):
    assert safe_link(text) is None


@given(st.text(max_size=40) | st.from_regex(r"[a-zA-Z\t\n ]{1,12}:[^ ]{0,20}"))
def test_every_link_has_one_of_three_schemes(text: str):
    link = safe_link(text)
    assert link is None or link.lower().startswith(("http://", "https://", "mailto:"))


def test_the_text_of_a_refused_link_stays():
    document = {
        "basics": {"url": "javascript:alert(1)", "profiles": [{"url": "file:///etc/passwd"}]},
        "work": [{"url": "ftp://a.example"}],
    }
    resume = read(document)
    assert resume.basics.url == "javascript:alert(1)"
    assert resume.basics.link is None
    assert resume.basics.profiles[0].url == "file:///etc/passwd"
    assert resume.basics.profiles[0].link is None
    assert resume.work[0].link is None


def test_addresses_cannot_add_headers():
    assert mail_link("a?bcc=b@c.example") == "mailto:a%3Fbcc%3Db@c.example"
    assert mail_link("a&b@c.example") == "mailto:a%26b@c.example"
    assert mail_link("tilda+jobs@c.example") == "mailto:tilda+jobs@c.example"
    assert mail_link("not an address") is None
    assert mail_link(None) is None
    assert read({"basics": {"email": "a@c.example"}}).basics.email_link == "mailto:a@c.example"
