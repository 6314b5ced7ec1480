import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput
from tests.families import word_pieces
from tests.tasks import TEXT, inputs_of, network_of


@pytest.fixture(scope="module")
def labeller():
    return heedful.wrap(network_of("label", "bert"), word_pieces())


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (None, "name one"),
        (1, "name one"),
        ("a=good", "'a' occurs 2 times; name one: a#1 to a#2"),
        ("film=good", "no word 'film'; its words are 'a', 'bad'"),
        ("#11=good", "no word '#11'"),
        ("bad=best", "'best'"),
        ("=good", "names no word"),
    ],
)
def test_a_word_or_label_that_does_not_exist_is_refused(labeller, target, message):
    with pytest.raises(BadInput, match=message):
        heedful.explain(labeller, TEXT, "attention-mean", target=target)


def test_a_word_can_be_named_by_its_number_and_its_label_be_predicted(labeller):
    by_number = heedful.explain(labeller, TEXT, "leave-one-out", target="#7=good")
    assert np.array_equal(by_number.scores, heedful.explain(labeller, TEXT, "leave-one-out", target="a#2=good").scores)
    predicted = heedful.explain(labeller, TEXT, "attention-mean", target="plot")
    with torch.no_grad():
        row = labeller.network(**inputs_of("label", "bert")).logits[0, 9]
    assert predicted.target.name == f"plot={['bad', 'good', 'neutral'][row.argmax()]}"
    contrast = heedful.explain(labeller, TEXT, "attention-mean", target="plot=bad", against="plot=good")
    assert contrast.output == pytest.approx((row[0] - row[1]).item())
    p = heedful.explain(labeller, TEXT, "attention-mean", target="plot=bad", scale="probability")
    assert p.output == pytest.approx(row.softmax(0)[0].item())


def test_a_label_may_contain_the_mark_that_stands_before_it():
    network = network_of("label", "bert")
    network.config.id2label = {0: "O", 1: "B=LOC", 2: "B=PER"}
    labeller = heedful.wrap(network, word_pieces())
    e = heedful.explain(labeller, TEXT, "attention-mean", target="plot=B=LOC", against="plot=O")
    assert e.target.name == "plot=B=LOC − plot=O"
    with pytest.raises(BadInput, match="'ORG'"):
        heedful.explain(labeller, TEXT, "attention-mean", target="plot=B=ORG")


def test_heads_read_all_words_where_none_is_named(labeller):
    assert np.allclose(labeller.readout([labeller.encode("bad plot")])[0], [0, 0.5, 0.5, 0])
    assert heedful.heads(labeller, [TEXT]).model == labeller.fingerprint


def test_the_command_line_reads_a_label_of_a_word(labeller, tmp_path, heedful_command):
    labeller.network.save_pretrained(tmp_path)
    word_pieces().save_pretrained(tmp_path)
    given = ("--model", tmp_path, "--precision", "float64", "--method", "attention-mean", "--json")
    code, out, _ = heedful_command("explain", TEXT, "--target", "plot=bad", *given)
    assert (code, '"plot=bad"' in out) == (0, True)
    code, _, error = heedful_command("explain", TEXT, *given)
    assert (code, "name one" in error) == (2, True)


def test_trust_leaves_labels_of_whole_texts_out(labeller):
    texts = [("a bad story", 0), ("the film was good", 1)]
    report = heedful.trust(labeller, texts, ["attention-mean"], ["deletion"], target="#2=good", progress=False)
    assert any("labels were not used" in str(note) for note in report.notes)
