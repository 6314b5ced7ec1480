from itertools import combinations

import numpy as np
import pytest

import heedful
from heedful.document import Pair
from heedful.errors import Unsupported
from heedful.models.hf.fill import filler_of
from heedful.models.question import ask
from heedful.perturb.document_values import DocumentValues
from heedful.perturb.drawn_words import drawn_words
from heedful.perturb.draws import Redrawn, draws_of
from heedful.perturb.masks import generator
from heedful.perturb.sweep import Sweep
from tests.families import build, masked_model, word_pieces

TEXT = "good film was not bad but very dull"


def count_words(texts):
    return [[float(sum(len(word) ** 1.5 for word in text.split())), 1.0] for text in texts]


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("draws") / "texts.txt"
    path.write_text("a bright story\nthe plot , the actor\nvery good !\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def filler(tmp_path_factory):
    path = tmp_path_factory.mktemp("fill")
    for part in masked_model():
        part.save_pretrained(path)
    return str(path)


def models(tiny):
    return {"tiny": tiny, "function": heedful.wrap(count_words, returns="scores"), "bert": build("bert")}


def mean_by_hand(model, lists, keep, target):
    """The mean output of texts that are written out word by word."""
    texts = [" ".join(w if k else d for w, k, d in zip(TEXT.split(), keep, drawn, strict=True)) for drawn in lists]
    return np.mean([model([text])[0, target] for text in texts])


@pytest.mark.parametrize("name", ["tiny", "function", "bert"])
def test_marginal_values_are_the_mean_over_texts_with_the_drawn_words_spelt_out(tiny, lines, name):
    model = models(tiny)[name]
    question = ask(model, [TEXT], 1)
    seed = int(generator(3, question.documents[0]).integers(2**31))
    words = drawn_words(lines, 4 * 8, seed)
    lists = [words[k::4] for k in range(4)]
    keep = np.random.default_rng(0).random((6, 8)) < 0.5
    keep[0] = True
    found = Sweep(question, 0, "word", f"marginal:4:3:{lines}")(keep)
    assert found == pytest.approx([mean_by_hand(model, lists, row, 1) for row in keep], abs=1e-6)
    assert found[0] == pytest.approx(question.logits[0, 1], abs=1e-6)


@pytest.mark.parametrize("method", ["leave-one-out", "lime", "shapley-sampled", "banzhaf-sampled", "occlusion"])
def test_drawing_from_one_word_is_replacing_by_it(tiny, tmp_path, method):
    one = tmp_path / "one.txt"
    one.write_text("story\n", encoding="utf-8")
    drawn = heedful.explain(tiny, TEXT, method, absence=f"marginal:3:{one}")
    replaced = heedful.explain(tiny, TEXT, method, absence="replace:story")
    assert drawn.scores == pytest.approx(replaced.scores, abs=1e-9)
    assert drawn.facts["masks"] == 3 * replaced.facts["masks"]
    assert "the mean over 3 draws (seed 0)" in str(drawn.notes)


def test_shapley_values_of_draws_are_those_of_the_mean_game_and_sum_to_its_gain(tiny, lines):
    text = "not bad but dull"
    question = ask(tiny, [text], 1)
    sweep = Sweep(question, 0, "word", f"marginal:{lines}")
    f = {S: sweep(np.isin(np.arange(4), S)[None])[0] for n in range(5) for S in combinations(range(4), n)}
    by_hand = [
        sum(
            (f[tuple(sorted((*S, j)))] - f[S]) * [1 / 4, 1 / 12, 1 / 12, 1 / 4][len(S)]
            for n in range(4)
            for S in combinations([i for i in range(4) if i != j], n)
        )
        for j in range(4)
    ]
    e = heedful.explain(tiny, text, "shapley-sampled", target=1, absence=f"marginal:{lines}")
    assert e.scores == pytest.approx(by_hand, abs=1e-9)
    assert e.scores.sum() == pytest.approx(f[0, 1, 2, 3] - f[()], abs=1e-9)


def test_conditional_values_are_the_mean_over_the_texts_that_the_masked_language_model_fills(tiny, filler):
    keep = np.ones((3, 8), dtype=bool)
    keep[1, [2, 5]] = keep[2, 7] = False
    question = ask(tiny, [TEXT], 1)
    found = Sweep(question, 0, "word", f"conditional:6:{filler}")(keep)
    redrawn = Redrawn(tiny, question.documents[0], draws_of(f"conditional:6:{filler}"))
    # [cls] stands before the words.
    texts = list(redrawn.texts(np.insert(keep, 0, True, axis=1)))
    kept = [
        [w for w, k in zip(text.split(), row, strict=True) if k]
        for text, row in zip(texts, keep.repeat(6, 0), strict=True)
    ]
    assert kept == [[w for w, k in zip(TEXT.split(), row, strict=True) if k] for row in keep.repeat(6, 0)]
    values = [tiny([text])[0, 1] for text in texts]
    assert found == pytest.approx(np.mean(np.reshape(values, (3, 6)), axis=1), abs=1e-9)


def test_many_conditional_draws_approach_the_expectation_over_every_word(tiny, filler):
    p = filler_of(filler).distributions(TEXT.replace("dull", "[MASK]"), 1)[0]
    words = word_pieces().convert_ids_to_tokens(np.flatnonzero(p).tolist())
    values = tiny([TEXT.replace("dull", word) for word in words])[:, 1]
    mean, spread = p[p > 0] @ values, np.sqrt(p[p > 0] @ values**2 - (p[p > 0] @ values) ** 2)
    e = heedful.explain(tiny, TEXT, "leave-one-out", target=1, absence=f"conditional:500:{filler}", unit="type")
    assert e.output - e.scores[-1] == pytest.approx(mean, abs=4 * spread / 500**0.5)
    assert spread > 0


def test_draws_depend_on_their_seed_alone(tiny, lines):
    runs = [heedful.explain(tiny, TEXT, "leave-one-out", absence=f"marginal:5:{s}:{lines}").scores for s in (1, 1, 2)]
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != runs[2]).any()


def test_a_pair_stays_a_pair(lines):
    model, pair = build("bert"), Pair("the film was good", "the story was bad")
    redrawn = Redrawn(model, model.encode(pair), draws_of(f"marginal:2:{lines}"))
    (first, second) = redrawn.texts((model.encode(pair).words != 4)[None])
    for copy in (first, second):
        assert copy.first == "the film was good"
        assert copy.second.split()[1:] == ["story", "was", "bad"]


def test_what_has_no_words_to_draw_is_refused(tiny, lines):
    def drawn(model, what, **settings):
        return heedful.explain(model, what, "leave-one-out", absence=f"marginal:{lines}", **settings)

    with pytest.raises(Unsupported, match="for texts only"):
        drawn(build("vit"), np.zeros((16, 16, 3), dtype=np.uint8), unit="patch")
    with pytest.raises(Unsupported, match="reads more than the text"):
        drawn(heedful.continuation(build("gpt2"), 3), "the film was")
    with pytest.raises(Unsupported, match="choose the unit word"):
        drawn(build("bert"), "the unpronounceably good film", unit="token")
    with pytest.raises(Unsupported, match="does not draw words"):
        heedful.explain(tiny, TEXT, "shapley-exact", absence=f"marginal:{lines}")


def test_metrics_and_the_command_line_draw_words_too(tiny, lines, heedful_command):
    question = ask(tiny, [TEXT], 1)
    values = DocumentValues(question, "word")
    by_hand = heedful.explain(tiny, TEXT, "leave-one-out", target=1, absence=f"marginal:{lines}").scores
    assert values.one_out(f"marginal:{lines}") == pytest.approx(by_hand, abs=1e-12)
    code, out, _ = heedful_command("explain", TEXT, "--method", "leave-one-out", "--absence", f"marginal:{lines}")
    assert code == 0
    assert "mean over 10 draws" in " ".join(out.split())
    code, _, error = heedful_command("explain", TEXT, "--absence", "marginal")
    assert code == 2
    assert "does not say where words are drawn from" in " ".join(error.split())
