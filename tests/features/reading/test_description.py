import json

import numpy as np
import pytest

import heedful
from heedful.run_folder import unsealed
from tests.features.reading.planted import planted_dictionary, planted_model, random_texts


@pytest.fixture(scope="module")
def descriptions():
    weights = [{" good": 2.0}, {" good": 1.0, " bad": 3.0}, {}, {" plot": 0.5}]
    return heedful.features.describe(planted_dictionary(planted_model(), weights), random_texts(60))


def test_features_are_found_by_number_and_by_words(descriptions):
    assert descriptions[np.int64(3)].feature == 3
    assert [own.feature for own in descriptions.search("GOOD")] >= [0, 1]
    assert 3 in [own.feature for own in descriptions.search("plot")]
    assert len(descriptions.search("nothing like that")) == 0
    assert [own.feature for own in descriptions.only([3, 0])] == [3, 0]
    assert descriptions.search("plot").width == 4


def test_the_frame_has_a_row_per_feature(descriptions):
    frame = descriptions.to_frame()
    assert frame["feature"].tolist() == [0, 1, 3]
    assert frame["auroc"].tolist() == [own.rule.auroc.value for own in descriptions]
    assert frame["label"][0] == "token: good"


def test_a_folder_has_the_page_and_every_number(descriptions, tmp_path):
    descriptions.save(tmp_path / "out")
    lines = (tmp_path / "out" / "features.jsonl").read_text(encoding="utf-8").splitlines()
    kept = unsealed(lines[0])
    assert (kept["feature"], kept["label"], kept["rules"][0]["values"]) == (0, "token: good", ["good"])
    assert kept["excerpts"][0]["activations"][kept["excerpts"][0]["peak"]] == 2.0
    assert len(lines) == 3
    assert json.loads(lines[1])["feature"] == 1
    assert (tmp_path / "out" / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_text_forms_are_short(descriptions):
    assert repr(descriptions).startswith("<descriptions of 3 of 4 features, ")
    assert repr(descriptions[0]).startswith("<feature 0: token: good, AUROC 1")
    assert len(repr(descriptions[1])) <= 300
    assert descriptions.summary.count("\n") == 3


def test_the_details_of_a_feature_are_its_texts_outputs_and_neighbours(descriptions):
    first, numbers, title, *others = descriptions[1].details.splitlines()
    assert first == repr(descriptions[1])
    assert numbers.startswith("Mean ")
    assert title == "Strongest texts:"
    strongest = descriptions[1].excerpts[0]
    assert others[0].strip().startswith(f"{strongest.activation:.3g}: ")
    assert f"[{strongest.tokens[strongest.peak].strip()}]" in others[0].replace("[ ", "[")
    assert sum(line.startswith("  ") for line in others) <= 5
    raised = next(line for line in others if line.startswith("Raises: "))
    assert raised.count(", ") == len(descriptions[1].raised) - 1
    assert others[-1].startswith("Nearest features, with the cosine: ")
