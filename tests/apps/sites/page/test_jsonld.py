"""JSON-LD, as websites write it."""

import json

import pytest

from apps.sites.models import PageContent
from apps.sites.page import JSON_LD
from apps.sites.page.jsonld import MOST_REFERENCES, MOST_SCRIPTS
from apps.sites.page.loose_json import LONGEST, InvalidJson, read_json
from apps.sites.page.values import MOST_ITEMS
from tests.apps.sites.drawing import page

CAFE = '{"@context": "https://schema.org", "@type": "CafeOrCoffeeShop", "name": "Blue Door"}'


def block(source: str) -> str:
    return f'<script type="application/ld+json">{source}</script>'


def read(*sources: str) -> PageContent:
    return page("".join(map(block, sources)))


def test_a_thing():
    (item,) = read(CAFE).structured
    assert (item.syntax, item.types) == ("json-ld", ["CafeOrCoffeeShop"])
    assert item.data == {"@type": ["CafeOrCoffeeShop"], "name": "Blue Door"}
    assert read(CAFE).problems == []


@pytest.mark.parametrize(
    "source",
    [
        f"<!-- {CAFE} -->",
        f"//<![CDATA[\n{CAFE}\n//]]>",
        f"// <![CDATA[ {CAFE} // ]]>",
        f"/*<![CDATA[*/{CAFE}/*]]>*/",
        f"<![CDATA[{CAFE}]]>",
        f"/* our data */ {CAFE} // end",
        f"{CAFE};",
        f"[{CAFE},]",
        CAFE.replace("}", ",}"),
        CAFE.replace('"name"', '// http://x "y\n"name"'),
        CAFE.replace('"name"', '/* "x": [ */ "name"'),
        CAFE.replace('"', "&quot;"),
    ],
)
def test_what_is_not_strict_json_is_repaired_and_reported(source: str):
    content = read(source)
    assert [item.data["name"] for item in content.structured] == ["Blue Door"]
    assert content.problems[0].startswith(f"{JSON_LD} block 1 is not valid JSON")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("a\nb\tc", "a\nb\tc"),
        ("a\x01b", "a\x01b"),
        (r"it\'s", "it's"),
        (r"50\% off", "50% off"),
        (r"\u00e9\n", "é\n"),
        ("http://x/*y*/ // z, }", "http://x/*y*/ // z, }"),
    ],
)
def test_strings_keep_what_they_say(written: str, value: str):
    assert read(f'{{"@type": "Cafe", "name": "{written}"}}').structured[0].data["name"] == value


def test_characters_that_postgres_cannot_store_are_replaced():
    content = read(r'{"@type": "Caf\u0000e", "na\u0000me": "a\u0000b\ud800c"}')
    assert content.structured[0].data == {"@type": ["Caf�e"], "na�me": "a�b�c"}
    assert "\\u0000" not in content.model_dump_json()


def test_numbers_that_json_cannot_hold():
    (item,) = read(
        '{"a": NaN, "b": 1e999, "c": -Infinity, "d": 123456789012345678901, "e": 2.5}'
    ).structured
    assert item.data == {"b": "1e999", "d": "123456789012345678901", "e": 2.5}
    json.dumps(item.data, allow_nan=False)


def test_several_roots_lists_and_graphs():
    graph = '{"@context": "x", "@graph": [{"@type": "A"}, {"@graph": [{"@type": "B"}]}]}'
    content = read('{"@type": "C"} {"@type": "D"}', '[{"@type": "E"}, [{"@type": "F"}]]', graph)
    assert [item.types for item in content.structured] == [["C"], ["D"], ["E"], ["F"], ["A"], ["B"]]


def test_names_lose_their_vocabulary():
    (item,) = read(
        '{"@type": ["http://schema.org/Cafe", "schema:Store"], "schema:name": {"@value": "A", "@language": "en"},'
        ' "https://schema.org/url": {"@list": ["x"]}}'
    ).structured
    assert item.types == ["Cafe", "Store"]
    assert item.data == {"@type": ["Cafe", "Store"], "name": "A", "url": ["x"]}


def test_references_are_replaced_by_what_they_refer_to():
    first, second = read(
        '{"@type": "WebSite", "publisher": {"@id": "#us"}, "about": {"@id": "#unknown"}}',
        '{"@type": "Cafe", "@id": "#us", "name": "Blue Door"}',
    ).structured
    assert first.data["publisher"] == second.data
    assert first.data["about"] == {"@id": "#unknown"}


def test_references_in_a_circle_end():
    content = read(
        '{"@graph": [{"@type": "Cafe", "@id": "a", "founder": {"@id": "b"}},'
        ' {"@type": "Person", "@id": "b", "worksFor": {"@id": "a"}}]}'
    )
    cafe, person = content.structured
    assert cafe.data["founder"] == {"@type": ["Person"], "@id": "b", "worksFor": {"@id": "a"}}
    assert person.data["worksFor"]["founder"] == {"@id": "b"}


def test_references_are_followed_a_few_times():
    nodes = [{"@id": f"n{n}", "@type": "Thing", "next": {"@id": f"n{n + 1}"}} for n in range(9)]
    thing = read(json.dumps(nodes)).structured[0].data
    for _ in range(MOST_REFERENCES):
        thing = thing["next"]
    assert thing["next"] == {"@id": f"n{MOST_REFERENCES + 1}"}


def test_a_graph_of_references_is_bounded():
    nodes = [
        {
            "@id": f"n{number}",
            "@type": "Thing",
            "knows": [{"@id": f"n{other}"} for other in range(100)],
        }
        for number in range(100)
    ]
    content = read(json.dumps({"@graph": nodes}))
    assert len(content.model_dump_json()) < 3_000_000
    assert any("values" in problem for problem in content.problems)
    assert all(len(item.data["knows"]) == 100 for item in content.structured)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "empty"),
        ("<!-- -->", "empty"),
        ("{", "cannot be read"),
        ('{"a" "b"}', "cannot be read"),
        ("not json", "cannot be read"),
        ('"just text"', "no object"),
        ("[" * 100_000, "nests deeper"),
        ('{"a":' * 50_000, "nests deeper"),
        ('"&quot;' + "[" * 100_000, "nests deeper"),
        ('{"a": "' + "x" * LONGEST + '"}', "more than"),
        ("1" * 10_000, "no object"),
    ],
)
def test_what_cannot_be_read_is_a_problem_and_the_rest_is_read(source: str, reason: str):
    content = read(source, CAFE)
    assert [item.data["name"] for item in content.structured] == ["Blue Door"]
    assert content.problems[0].startswith(f"{JSON_LD} block 1")
    assert reason in content.problems[0]


@pytest.mark.parametrize(
    "source", ['"' + r"\"" * 400_000, "/*" * 400_000, "<!--" * 200_000, "[,]" * 300_000]
)
def test_hostile_text_is_read_in_one_pass(source: str):
    """Each of them would take hours if it were read again from every character."""
    try:
        read_json(source)
    except InvalidJson as error:
        assert str(error)


def test_items_and_blocks_are_bounded():
    many = read(json.dumps([{"@type": "Product", "name": "x"}] * (MOST_ITEMS + 1)))
    assert len(many.structured) == MOST_ITEMS
    assert len(many.problems) == 1
    blocks = read(*[CAFE] * (MOST_SCRIPTS + 1))
    assert len(blocks.structured) == MOST_SCRIPTS
    assert len(blocks.problems) == 1


def test_other_scripts_are_not_data():
    assert (
        page(f"<script>{CAFE}</script><script type=application/json>{CAFE}</script>").structured
        == []
    )
    assert (
        len(page(f'<script type="Application/LD+JSON; charset=utf-8">{CAFE}</script>').structured)
        == 1
    )
