import re
from itertools import groupby
from operator import itemgetter

from heedful.document import SPECIAL
from heedful.document.alignment.token_text import words_of
from tests.alignments import aligned, encoded
from tests.tokenizers import MAKERS, TEXTS, every_text, made, written_words


@every_text
def test_words_are_the_written_ones_before_tokens_have_their_say(text):
    of = zip(text, words_of(text), strict=True)
    words = ["".join(c for c, _ in run) for word, run in groupby(of, key=itemgetter(1)) if word != SPECIAL]
    assert words == written_words(text)


def test_pieces_show_what_the_model_reads_without_the_tokenizers_signs():
    alignment = aligned(encoded(made("WordPiece"), "The CAFÉ ☃ don't"))
    assert alignment.pieces[0] == "<s>"
    assert alignment.pieces[-1] == "</s>"
    assert "".join(alignment.pieces[1:-1]) == "thecafe☃don't"
    for name in MAKERS:
        for piece in aligned(encoded(made(name), TEXTS["contractions"])).pieces:
            assert not re.search("[▁Ġ#]", piece)
    assert aligned(encoded(made("bytes"), "ñ😀")).pieces[1:-1] == ("ñ", "ñ", "😀", "😀", "😀", "😀")
