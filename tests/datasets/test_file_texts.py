"""A file of a user as a data set: its splits, its classes, and what is refused."""

import json

import pytest

import heedful
from heedful.datasets.file_texts import FileTexts
from heedful.errors import BadInput, UnknownName

ROWS = [(f"a {word} film, number {number}", label) for number in range(30) for word, label in (("good", 1), ("bad", 0))]


def written(path, rows=ROWS, header="comment,liked"):
    path.write_text("\n".join([header, *(f'"{text}",{label}' for text, label in rows)]) + "\n", encoding="utf-8")
    return str(path)


def split_of(data):
    return {example.text: split for split in ("train", "validation", "test") for example in data.examples(split)}


def test_eight_of_ten_texts_are_to_train_and_no_text_is_in_two_splits(tmp_path):
    data = FileTexts(written(tmp_path / "a.csv"), label_column="liked")
    assert [len(data.examples(split)) for split in ("train", "validation", "test")] == [48, 6, 6]
    assert len(split_of(data)) == 60
    assert {(example.text, example.label) for example in data.examples("train")} < set(ROWS)


def test_the_order_of_the_rows_does_not_matter_and_copies_stay_together(tmp_path):
    data, other = (
        FileTexts(written(tmp_path / f"{name}.csv", rows), label_column="liked")
        for name, rows in (("a", ROWS), ("b", [*ROWS[::-1], *ROWS]))
    )
    assert split_of(data) == split_of(other)
    assert sum(len(other.examples(split)) for split in ("train", "validation", "test")) == 120


@pytest.mark.parametrize(
    ("labels", "classes"), [(("yes", "no"), ("no", "yes")), ((10, 9), ("9", "10")), ((1, 0), ("0", "1"))]
)
def test_classes_are_the_labels_in_order(tmp_path, labels, classes):
    rows = [(text, labels[label]) for text, label in ROWS]
    data = FileTexts(written(tmp_path / "a.csv", rows), label_column="liked")
    assert data.classes == classes
    for example in data.examples("train"):
        assert str(dict(rows)[example.text]) == classes[example.label]


def test_rationales_of_a_file_are_those_of_its_examples(tmp_path):
    lines = [{"text": text, "label": label, "rationale": [[2, 5]]} for text, label in ROWS]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert FileTexts(str(tmp_path / "a.jsonl")).examples("test")[0].rationale == ((2, 5),)


def test_lines_have_no_classes_and_a_column_of_them_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(text for text, _ in ROWS), encoding="utf-8")
    data = FileTexts(str(tmp_path / "a.txt"))
    assert data.classes == ()
    assert len(data.examples("train")) == 48
    with pytest.raises(BadInput, match="leave them out"):
        FileTexts(str(tmp_path / "a.txt"), text_column="comment").examples("train")


def test_a_missing_label_or_column_is_one_sentence(tmp_path):
    file = written(tmp_path / "a.csv", [*ROWS, ("one more", "")])
    with pytest.raises(BadInput, match="a.csv, text 61: it has no label"):
        FileTexts(file, label_column="liked").examples("train")
    assert len(FileTexts(file, label_column="none").examples("train")) == 49
    with pytest.raises(UnknownName, match="no column 'like'; did you mean 'liked'"):
        FileTexts(file, label_column="like").examples("train")


def test_it_is_no_member_of_the_catalogue():
    assert FileTexts not in heedful.datasets().values()
