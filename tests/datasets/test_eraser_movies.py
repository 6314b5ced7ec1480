import pyarrow as pa
import pytest
from pyarrow import parquet

from heedful.datasets.eraser_movies import EraserMovies
from heedful.document.rationale import marked_units
from heedful.errors import BadInput

TEXT = "the plot is dull .\nthe  cast is dull , too .\nnot funny"
SPANS = [[0, 4], [7, 9], [12, 14]]
QUOTES = ["the plot is dull", "is dull", "not funny"]


def marked(example):
    return [example.text[start:end] for start, end in example.rationale]


def write_one(write, spans, text=TEXT, label=0):
    kind = pa.list_(pa.list_(pa.int64()))
    return write("eraser_movies/val.parquet", text=[text], label=[label], evidence_spans=pa.array([spans], type=kind))


def test_spans_of_words_become_spans_of_characters(write):
    write_one(write, SPANS)
    (example,) = EraserMovies().examples("validation")
    assert (example.text, example.label) == (TEXT, 0)
    assert marked(example) == ["the plot is dull", "is dull", "not funny"]


def test_empty_marks_are_left_out_and_a_text_without_any_has_none(write):
    write_one(write, [[3, 3], [3, 4]])
    assert marked(EraserMovies().examples("validation")[0]) == ["dull"]
    write_one(write, [[3, 3]])
    assert EraserMovies().examples("validation")[0].rationale is None


@pytest.mark.parametrize("spans", [[[0, 99]], [[4, 2]], [[-1, 2]], [[1]], [None]])
def test_a_span_that_does_not_fit_is_one_sentence(write, spans):
    write_one(write, spans)
    with pytest.raises(BadInput, match="Row 0 of val.parquet has a rationale that is not in its text"):
        EraserMovies().examples("validation")


def publish(hub, quotes):
    place = "eraser-benchmark/movie_rationales", "default/validation/0000.parquet", "refs/convert/parquet"
    hub(*place, review=[TEXT], label=[0], evidences=pa.array([quotes], type=pa.list_(pa.string())))


def test_quotes_of_the_hub_are_found_at_their_first_free_place(hub, write):
    publish(hub, QUOTES)
    there = EraserMovies().examples("validation")
    write_one(write, SPANS)
    assert EraserMovies().examples("validation") == there


def test_a_quote_that_is_not_in_the_text_is_one_sentence(hub):
    publish(hub, ["quite funny"])
    with pytest.raises(BadInput, match="Row 0 of 0.parquet has a rationale that is not in its text"):
        EraserMovies().examples("validation")


def test_the_real_reviews_have_the_documented_share_of_marked_words(needs):
    needs("eraser_movies")
    for split, size, share in (("train", 1600, 8.6), ("validation", 200, 6.5), ("test", 199, 30.3)):
        examples = EraserMovies().examples(split)
        words = sum(len(e.text.split()) for e in examples)
        n_marked = sum(len(quote.split()) for e in examples if e.rationale for quote in marked(e))
        assert len(examples) == size
        assert 100 * n_marked / words == pytest.approx(share, abs=0.05)
        assert [e.rationale is None for e in examples].count(True) == (split == "train")


def test_the_papers_model_reads_the_documented_share_of_rationales(needs, paper):
    needs("eraser_movies")
    lost = []
    for split in ("validation", "test"):
        lost.append(0)
        for example in EraserMovies().examples(split):
            read = max(end for _, end in paper.encode(example.text).spans)
            if all(start >= read for start, _ in example.rationale):
                lost[-1] += 1
                with pytest.raises(BadInput, match="nothing is marked"):
                    marked_units(paper.encode(example.text), "word", example.rationale)
    assert lost == [42, 17]


def test_what_the_hub_quotes_lies_almost_always_where_the_real_marks_lie(needs, hub, monkeypatch):
    folder = needs("eraser_movies")
    rows = parquet.read_table(folder / "eraser_movies" / "test.parquet").to_pylist()
    quotes = [[" ".join(row["text"].split()[a:b]) for a, b in row["evidence_spans"]] for row in rows]
    place = "eraser-benchmark/movie_rationales", "default/test/0000.parquet", "refs/convert/parquet"
    hub(*place, review=[row["text"] for row in rows], label=[row["label"] for row in rows], evidences=quotes)
    examples = EraserMovies().examples("test")
    monkeypatch.setenv("HEEDFUL_DATA", str(folder))
    true = EraserMovies().examples("test")
    spans = [span for example in true for span in example.rationale]
    astray = sum(len(set(a.rationale) - set(b.rationale)) for a, b in zip(true, examples, strict=True))
    assert len(spans) == 2047
    assert astray <= 6
