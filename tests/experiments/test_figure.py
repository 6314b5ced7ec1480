import xml.etree.ElementTree as ElementTree

from heedful.experiments.figure import figure, picture, quiet


def drawn():
    made = figure(3.0, 2.0)
    quiet(made.add_subplot()).plot([0, 1], [2, 3], label="a < b")
    return made


def test_the_same_drawing_gives_the_same_bytes():
    for kind in ("svg", "png"):
        assert picture(drawn(), kind) == picture(drawn(), kind)


def test_an_svg_is_whole_and_a_png_has_the_size():
    assert ElementTree.fromstring(picture(drawn(), "svg")).tag.endswith("svg")
    png = picture(drawn(), "png")
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 450
