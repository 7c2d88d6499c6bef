"""Reports on paper: what strangers wrote stays text, and nothing is fetched."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from pypdf import PdfReader

from apps.sites.answers import AnalysedAnswer, Answer, Mention, ModelAnalysis
from apps.sites.answers.models import ProviderAnalysis
from apps.sites.models import Check, Fact, Facts, Prompt, RobotsRules
from apps.sites.printing import pdf_from
from apps.sites.report import PageLine, Report, Website
from apps.sites.report.printed import html_of, parts_of

SITE = "https://bakery.example"
AT = datetime(2030, 6, 1, 12, 30, tzinfo=UTC)
ATTACK = "<img src='http://127.0.0.1:9/x.png'> <script>alert(1)</script>"


def report(name: str = "Acme", **changes: Any) -> Report:
    fact = Fact(value=name, page=f"{SITE}/", words=name, method="title")
    website = Website(
        site=SITE,
        facts=Facts(business_name=fact, keywords=[fact]),
        checks=[
            Check(id="b", title="Second", state="warn", weight=3, reason=name, fix=name),
            Check(id="a", title="First", state="fail", weight=9, reason=name, fix=name),
            Check(id="c", title="Third", state="pass", weight=10, reason="Fine."),
        ],
        pages=[PageLine(url=f"{SITE}/", outcome="read", title=name)],
        robots=RobotsRules(state="absent", url=f"{SITE}/robots.txt"),
    )
    given = {
        "url": SITE,
        "website": website,
        "prompts": [Prompt(id="best", text=name, kind="generic")],
        "model_analysis": ModelAnalysis(state="skipped: not_asked"),
    }
    return Report.model_validate(given | changes)


def mention(start: int, end: int) -> Mention:
    return Mention(
        text="x",
        kind="name",
        start=start,
        end=end,
        rank=1,
        ranked_by="business",
        sentence="x",
    )


def test_texts_of_strangers_are_escaped() -> None:
    html = html_of(report(ATTACK), AT)
    assert "<script>" not in html and "<img" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_what_matters_most_comes_first() -> None:
    html = html_of(report(), AT)
    assert html.index("First") < html.index("Second") < html.index("Third")


@pytest.mark.parametrize("name", ["Acme", ATTACK, "面包店 مخبز", "x" * 5_000])
def test_a_report_becomes_a_tagged_pdf_in_a4(name: str) -> None:
    pdf = PdfReader(io.BytesIO(pdf_from(html_of(report(name), AT))))
    root: Any = pdf.trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"] and root["/Lang"] == "en"
    assert pdf.metadata is not None and name[:40] in (pdf.metadata.title or "")
    width, height = pdf.pages[0].mediabox[2:]
    assert (round(width), round(height)) == (595, 842)
    text = "\n".join(page.extract_text() for page in pdf.pages)
    assert "1 June 2030, 12:30 UTC" in text and "have not been asked" in text


def test_answers_are_split_at_their_mentions() -> None:
    text = "🥖 Acme, then Acme"
    parts = parts_of(text, [mention(13, 17), mention(2, 6)])
    assert [(part.text, part.is_mention) for part in parts] == [
        ("🥖 ", False),
        ("Acme", True),
        (", then ", False),
        ("Acme", True),
    ]
    assert "".join(part.text for part in parts_of(text, [mention(0, 6), mention(2, 6)])) == text


def test_the_largest_report_is_printed() -> None:
    texts = ["x" * 50_000, "word " * 10_000, "\n" * 50_000]
    answers = [
        AnalysedAnswer(answer=Answer(provider=f"p{n}", model="m", prompt="best", text=text))
        for n, text in enumerate(texts)
    ]
    providers = [
        ProviderAnalysis(provider=each.answer.provider, model="m", state="answered")
        for each in answers
    ]
    analysis = ModelAnalysis(state="completed", answers=answers, providers=providers)
    pdf = pdf_from(html_of(report("y" * 100_000, model_analysis=analysis), AT))
    assert len(PdfReader(io.BytesIO(pdf)).pages) > 10
