"""Microdata and RDFa."""

from apps.sites.page.values import MOST_LEVELS
from tests.apps.sites.drawing import page

CAFE = '<div itemscope itemtype="https://schema.org/CafeOrCoffeeShop">'


def test_an_item_with_a_thing_inside():
    (item,) = page(
        f"{CAFE}<h1 itemprop=name>Blue <b>Door</b></h1>"
        "<div itemprop=address itemscope itemtype='http://schema.org/PostalAddress'>"
        "<span itemprop=addressLocality>Leeds</span></div></div>"
    ).structured
    assert (item.syntax, item.types) == ("microdata", ["CafeOrCoffeeShop"])
    assert item.data == {
        "@type": ["CafeOrCoffeeShop"],
        "name": "Blue Door",
        "address": {"@type": ["PostalAddress"], "addressLocality": "Leeds"},
    }


def test_values_of_elements():
    (item,) = page(
        f"{CAFE}<meta itemprop=a content='A'><a itemprop=b href=/b>x</a><img itemprop=c src=c.png>"
        "<time itemprop=d datetime=09:00>nine</time><data itemprop=e value=5>five</data>"
        "<span itemprop=f content=F>x</span><a itemprop=g href='tel:1'>x</a><p itemprop='h i'>two</p>"
        "<p itemprop=j>1</p><p itemprop=j>2</p><p itemprop=j>3</p><time itemprop=k>noon</time></div>"
    ).structured
    item.data.pop("@type")
    assert item.data == {
        "a": "A", "b": "https://shop.example/b", "c": "https://shop.example/c.png", "d": "09:00",
        "e": "5", "f": "F", "g": "tel:1", "h": "two", "i": "two", "j": ["1", "2", "3"], "k": "noon",
    }  # fmt: skip


def test_itemref_and_itemid():
    (item,) = page(
        "<div itemscope itemtype=Cafe itemid='#us' itemref='phone nowhere'><b itemprop=name>A</b></div>"
        "<p id=phone>Call <b itemprop=telephone>123</b></p>"
    ).structured
    assert item.data == {"@type": ["Cafe"], "@id": "#us", "name": "A", "telephone": "123"}


def test_an_element_that_is_named_twice_counts_once():
    (item,) = page("<p itemscope itemref='b b' itemtype=T></p><b id=b itemprop=x>1</b>").structured
    assert item.data["x"] == "1"


def test_itemref_in_a_circle_ends():
    content = page(
        "<div itemscope id=a itemref='a b' itemtype=T><b itemprop=x>1</b><p id=b itemprop=y itemscope itemref=a>"
    )
    assert content.structured[0].data["x"] == "1"


def test_items_side_by_side_do_not_mix():
    one, two = page(
        "<p itemscope itemtype=A><b itemprop=n>1</b></p><div itemscope itemtype=B><b itemprop=n>2</b><p itemscope><b itemprop=n>3</b></p></div>"
    ).structured[:2]
    assert (one.data["n"], two.data["n"]) == ("1", "2")


def test_an_item_with_a_property_but_nothing_around_it_is_an_item():
    (item,) = page(
        "<body itemprop=mainEntity itemscope itemtype=Cafe><b itemprop=name>A</b>"
    ).structured
    assert item.types == ["Cafe"]


def test_depth_is_bounded():
    content = page("<div itemscope itemprop=a itemtype=T><b itemprop=n>x</b>" * 100)
    level, thing = 0, content.structured[0].data
    while "a" in thing:
        level, thing = level + 1, thing["a"]
    assert level <= MOST_LEVELS


def test_an_element_that_many_items_refer_to_is_bounded():
    shared = "<div id=x>" + "<b itemprop=q>z</b>" * 5_000 + "</div>"
    content = page("<p itemscope itemtype=T itemref=x></p>" * 5_000 + shared)
    assert len(content.model_dump_json()) < 3_000_000
    assert any("Microdata" in problem for problem in content.problems)


def test_rdfa():
    (item,) = page(
        '<div vocab="https://schema.org/" typeof="Bakery" resource="#us"><h1 property="name">Blue Door</h1>'
        '<p property="address" typeof="PostalAddress"><b property="addressLocality">Leeds</b></p>'
        '<a property="url" href="/">x</a><meta property="telephone" content="123">'
        '<b property="name">Second</b></div>'
    ).structured
    assert (item.syntax, item.types) == ("rdfa", ["Bakery"])
    assert item.data == {
        "@type": ["Bakery"],
        "@id": "#us",
        "name": ["Blue Door", "Second"],
        "address": {"@type": ["PostalAddress"], "addressLocality": "Leeds"},
        "url": "https://shop.example/",
        "telephone": "123",
    }


def test_rdfa_with_prefixes_and_relations():
    (item,) = page(
        '<div prefix="s: http://schema.org/" typeof="s:Bakery"><b property="s:name">A</b>'
        '<div rel="s:address"><p typeof="s:PostalAddress"><b property="s:addressLocality">Leeds</b></div></div>'
    ).structured
    assert item.data["name"] == "A"
    assert item.data["address"]["addressLocality"] == "Leeds"


def test_properties_without_a_type_are_no_item():
    assert page('<p property="name">A</p>').structured == []


def test_opengraph():
    content = page(
        '<html typeof="x:Page"><meta property="og:type" content="website"><meta property="og:site_name" content=" Blue  Door ">'
        '<meta name="og:image" content="1"><meta property="og:image" content="2">'
        '<meta property="business:contact_data:locality" content="Leeds"><meta property="og:empty" content="">'
        '<meta name="twitter:site" content="@x">'
    )
    (item,) = content.structured
    assert (item.syntax, item.types) == ("opengraph", ["website"])
    assert item.data == {
        "og:type": "website",
        "og:site_name": "Blue Door",
        "og:image": ["1", "2"],
        "business:contact_data:locality": "Leeds",
    }
