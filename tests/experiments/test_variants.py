from dataclasses import replace

import numpy as np
import pytest

from heedful.experiments.variants import TINY, Variant, measure_variants, review_texts, sized_config
from heedful.experiments.workspace import Workspace
from heedful.models.training_loop import Schedule
from heedful.models.transformer import TransformerConfig


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    seen = []
    workspace = Workspace(tmp_path_factory.mktemp("variants"), progress=lambda *done: seen.append(done))
    recipe = replace(TINY, schedule=Schedule(1, 20, 1e-2))
    config = sized_config(workspace, TransformerConfig())
    return measure_variants(workspace, [Variant("Plain layer", config, review_texts(workspace), recipe)]), seen


def test_a_model_and_its_documents_are_rows(measured):
    (model,), documents = measured[0]["models"], measured[0]["documents"]
    assert (model["variant"], model["n_train"], model["n_test"]) == ("Plain layer", 500, 200)
    assert 0 < model["n_right"] <= 200
    assert {row["document"] for row in documents} == set(range(6))
    assert all(
        -1 <= row["value"] <= 1 for row in documents if row["kind"] != "reliability" and row["value"] is not None
    )
    assert np.isfinite([row["value"] for row in documents if row["measure"] == "α ~ G-l1"]).all()


def test_progress_counts_training_and_explaining(measured):
    assert measured[1] == [(1, 2), (2, 2)]


def test_the_quick_form_is_small_and_the_full_form_is_the_paper_s(tmp_path):
    quick, full = (sized_config(Workspace(tmp_path, quick=quick), TransformerConfig()) for quick in (True, False))
    assert (quick.T_max, quick.d_e, quick.n_heads) == (64, 16, 2)
    assert full == replace(TransformerConfig(), positional="authors")
