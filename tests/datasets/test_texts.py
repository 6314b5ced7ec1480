import datasets
import numpy as np
import pandas as pd
import polars as pl
import pytest

from heedful.datasets import Dataset, Example
from heedful.datasets.labels import class_numbers
from heedful.datasets.texts import Texts, content_of, holds_many, places_by_hash, text_file, texts_in, texts_of
from heedful.document import Pair
from heedful.errors import BadInput, UnknownName

CLASSES = ("negative", "positive")
COMMENTS = ["a fine film", "dull", None, "so, so"]
FRAME = pd.DataFrame({"comment": COMMENTS, "toxic": [1.0, 0.0, 1.0, np.nan], "words": [3, 1, 0, 2]}, index=list("abcd"))
WANTED = ("a fine film", "dull", "", "so, so"), (1, 0, 1, None)


def content(texts):
    return texts.texts, class_numbers(texts.labels, CLASSES)


def files(folder):
    FRAME.to_csv(folder / "comments.csv")
    FRAME.to_csv(folder / "comments.tsv", sep="\t")
    FRAME.to_parquet(folder / "comments.parquet")
    FRAME.to_json(folder / "comments.jsonl", orient="records", lines=True)
    return [folder / f"comments.{ending}" for ending in ("csv", "tsv", "parquet", "jsonl")]


def test_every_kind_of_table_gives_the_same_texts(tmp_path):
    tables = [FRAME, pl.from_pandas(FRAME), datasets.Dataset.from_pandas(FRAME), *files(tmp_path)]
    for table in tables:
        texts = texts_of(table)
        assert content(texts) == WANTED
        assert holds_many(table)
        assert texts.about == (
            f"Read 4 texts from {texts.name}: text column 'comment', label column 'toxic', found by name."
        )
        assert content(texts_of(table, text="comment", label=False))[1] == (None,) * 4
    assert texts_of(str(tmp_path / "comments.csv")).name == "comments.csv"


def test_ids_are_a_column_or_the_index_or_numbers():
    assert texts_of(FRAME).ids == ("a", "b", "c", "d")
    assert texts_of(FRAME, id="words").ids == ("3", "1", "0", "2")
    assert texts_of(FRAME.assign(ID=list("wxyz"))).ids == ("w", "x", "y", "z")
    assert texts_of(pl.from_pandas(FRAME)).ids == texts_of(FRAME.set_axis([0, 0, 0, 0])).ids == ("0", "1", "2", "3")
    with pytest.raises(BadInput, match="ids in column 'toxic' of the DataFrame are not all different"):
        texts_of(FRAME, id="toxic")
    assert texts_of(FRAME).row("b") == texts_of(FRAME).row("1") == "dull"


def test_a_series_or_a_list_has_no_columns():
    assert texts_of(text for text in COMMENTS).texts == WANTED[0]
    for column in (FRAME["comment"], pl.Series(COMMENTS), COMMENTS, np.array(COMMENTS)):
        assert texts_of(column).texts == WANTED[0]
        assert content(texts_of(column, label=[1, 0, "positive", None])) == WANTED
        with pytest.raises(BadInput, match="are names of columns"):
            texts_of(column, text="comment")
        with pytest.raises(BadInput, match="one label for each of 4 texts"):
            texts_of(column, label=[1])
    assert texts_of(FRAME["comment"]).ids == ("a", "b", "c", "d")


def test_an_entry_of_a_list_may_have_a_label_and_a_rationale():
    texts = texts_of([("a", 1), Example("b", 0, ((0, 1),)), Pair("c", "d"), Example("e", -1)])
    assert texts.texts == ("a", "b", Pair("c", "d"), "e")
    assert class_numbers(texts.labels, CLASSES) == (1, 0, None, None)
    assert texts.rationales == (None, ((0, 1),), None, None)


def test_an_obvious_column_is_found():
    assert texts_of(FRAME.rename(columns={"comment": "Text"}).assign(note="by me")).texts == WANTED[0]
    # Neither name is obvious, but one column has strings.
    assert texts_of(FRAME.rename(columns={"comment": "said"})).texts == WANTED[0]
    assert "label column 'toxic' (found by name)" in texts_of(FRAME, text="comment").about
    # A measure is no label.
    assert set(texts_of(FRAME.assign(toxic=[0.1, 0.9, 0.5, 0.3])).labels) == {None}


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"comment": "said", "more": ["x y"] * 4}, "Its columns are 'said', 'toxic', 'words', 'more'"),
        ({"comment": "a film that has no header"}, "not obvious which column"),
        ({"comment": "review", "message": ["x y"] * 4}, "not obvious which column"),
    ],
)
def test_what_is_not_obvious_is_refused(columns, sentence):
    frame = FRAME.rename(columns={"comment": columns.pop("comment")}).assign(**columns)
    with pytest.raises(BadInput, match=sentence):
        texts_of(frame)


def test_wrong_data_are_one_sentence(tmp_path):
    with pytest.raises(UnknownName, match="no column 'coment'; did you mean 'comment'"):
        texts_of(FRAME, text="coment")
    with pytest.raises(BadInput, match="the DataFrame has no rows"):
        texts_of(FRAME[:0])
    with pytest.raises(BadInput, match="dict was given"):
        texts_of({"comment": ["a"]})
    with pytest.raises(BadInput, match="nowhere.csv cannot be read: there is no such file"):
        texts_of("nowhere.csv")


def test_a_text_is_not_a_file(tmp_path):
    (tmp_path / "a b.csv").write_text("text\nc\n")
    assert text_file(str(tmp_path / "a b.csv")) == tmp_path / "a b.csv"
    for text in (
        "a fine film",
        "I like data.csv",
        "cat.png",
        "x " * 200 + "y.csv",
        "a\nb.csv",
        "\ud800 a.csv",
        "a \0.csv",
    ):
        assert text_file(text) is None
        assert not holds_many(text)
    assert not holds_many(np.zeros((4, 4, 3), dtype=np.uint8))


def test_an_image_is_known_by_its_pixels():
    black, white = np.zeros((2, 2, 3)), np.ones((2, 2, 3))
    assert content_of(black) == content_of(black.copy()) != content_of(white)
    assert len(Texts(("a",), ("0",), (None,), "the given texts")) == 1


def test_a_data_set_says_what_its_labels_number():
    kinds = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["pos", "neg"])})
    data = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [0, 1, -1]}, features=kinds)
    texts = texts_of(data)
    assert class_numbers(texts.labels, ("neg", "pos"), texts.classes) == (1, 0, None)
    frame = pd.DataFrame({"text": ["a", "b", "c"]})
    for column in (data["text"], frame.text, frame.text.array, frame.text.values, pd.Index(frame.text)):
        assert texts_of(column).texts == ("a", "b", "c")
    assert texts_of(data, label=[1, 0, 1]).classes == ()


def test_a_column_that_looks_like_labels_is_named():
    frame = pd.DataFrame({"comment": ["a fine film", "dull", "so so"], "is_toxic": [0, 1, 0], "words": [3, 1, 2]})
    assert texts_of(frame).about.endswith(
        "No labels were read; 'is_toxic' looks like them: --label-column is_toxic, or label= in Python."
    )
    assert "looks like" not in texts_of(frame, label="is_toxic").about
    assert "looks like" not in texts_of(frame, label=False).about


def test_a_column_of_sentences_does_not_look_like_labels():
    columns = {"question": ["who ?", "where ?"], "context": ["Anna lives in Paris .", "The tower is in Rome ."]}
    assert "--label-column" not in texts_of(pd.DataFrame(columns), "question").about


def test_texts_of_a_split_come_with_the_classes_of_their_data_set():
    class Films(Dataset):
        name, classes = "films", CLASSES

        def examples(self, split):
            return [Example(f"{split} {number}", number) for number in range(2)]

    texts = texts_in(Films(), "validation")
    assert (texts.texts, texts.labels) == (("validation 0", "validation 1"), (0, 1))
    assert (texts.name, texts.classes) == ("films (validation)", CLASSES)
    assert texts_in(COMMENTS, "test").texts == texts_of(COMMENTS).texts
    with pytest.raises(UnknownName, match="data set"):
        texts_in("imbd", "test")
    with pytest.raises(UnknownName, match="split"):
        texts_in(COMMENTS, "tets")


def test_places_by_hash_do_not_depend_on_the_order_and_take_copies_together():
    texts = [f"text {number}" for number in range(50)] + ["text 3", "text 7"]
    chosen = {texts[place] for place in places_by_hash(texts, 10)}
    assert len(chosen) == 10
    assert {texts[::-1][place] for place in places_by_hash(texts[::-1], 10)} == chosen
    places = places_by_hash(texts, 51)
    assert places == [*range(52)]
    for n in (0, -1):
        with pytest.raises(BadInput, match="The number of texts must be a whole number of at least 1"):
            places_by_hash(texts, n)


def test_a_tuple_has_a_text_and_its_class_by_number_or_name():
    texts = texts_of([("good film", "positive"), ("bad film", 0), "a film"])
    assert texts.texts == ("good film", "bad film", "a film")
    assert texts.labels == ("positive", 0, None)
