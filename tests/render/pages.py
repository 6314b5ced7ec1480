"""Reading pages as a browser does: tags, attributes and text, and whether every tag is closed in order."""

from html.parser import HTMLParser

VOID = {"meta", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """A parsed page; `wrong` has the tags that are closed out of order, or never."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.wrong, self.pieces = [], [], [], []
        self.feed(html)
        self.close()
        self.wrong += self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.open[-1:] not in (["style"], ["script"]):
            self.pieces.append((self.open[-1] if self.open else "", self.last_attributes, data))

    @property
    def last_attributes(self):
        return self.tags[-1][1] if self.tags else {}

    @property
    def text(self):
        """All visible text, white space collapsed."""
        return " ".join("".join(data for *_, data in self.pieces).split())

    @property
    def words(self):
        """The tinted words: text and attributes."""
        return [
            (data, attributes)
            for tag, attributes, data in self.pieces
            if tag == "bdi" and "w" in (attributes.get("class") or "").split()
        ]

    @property
    def links(self):
        """Everything that a browser would fetch or go to, but for places on the page and embedded data."""
        links = [
            attributes[name] for _, attributes in self.tags for name in ("src", "href", "action") if name in attributes
        ]
        return [link for link in links if not link.startswith(("#", "data:"))]

    def count(self, tag):
        return sum(name == tag for name, _ in self.tags)
