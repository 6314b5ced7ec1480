import re

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from heedful.render.templating import _environment, fill_template
from tests.render.pages import Page

HOSTILE = "<script>alert(1)</script> \" ' & \x1b[31m\u202e\x00"


class Named:
    def __str__(self):
        return HOSTILE


def filled(source, **context):
    return _environment().from_string(source).render(context)


@pytest.mark.parametrize("value", [HOSTILE, Named(), [HOSTILE], {"a": HOSTILE}])
def test_text_is_escaped_and_has_no_control_characters(value):
    html = filled('<p title="{{ value }}">{{ value }}</p>', value=value)
    page = Page(html)
    assert [tag for tag, _ in page.tags] == ["p"]
    assert page.wrong == []
    assert "<script>" in page.text
    assert not set(html) & set("\x1b\u202e\x00")


def test_markup_is_kept():
    assert filled("{{ value }}", value=Markup("<b>x</b>")) == "<b>x</b>"


def test_an_unknown_name_is_an_error():
    with pytest.raises(UndefinedError):
        filled("{{ nothing }}")
    with pytest.raises(UndefinedError):
        fill_template("heads.html", {})


def test_numbers_take_a_format():
    assert filled('{{ value | number("+.2f") }}', value=1.239) == "+1.24"


def test_json_cannot_close_its_script():
    html = filled("<script>{{ value | tojson }}</script>", value="</script><b>")
    assert html.count("</script>") == 1


def test_the_skeleton_fetches_nothing_and_has_both_colour_schemes():
    html = fill_template("base.html", {})
    page = Page(html)
    assert html.startswith("<!doctype html>")
    assert page.wrong == page.links == []
    assert not re.search(r"https?://|@import|url\(", html)
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in page.tags
    assert "prefers-color-scheme: dark" in html
