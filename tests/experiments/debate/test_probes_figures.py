from heedful.experiments.debate.probes_figures import draw_accuracies, draw_agreement
from tests.experiments.debate.test_probes_claims import finding, numbers


def test_published_values_stand_beside_ours():
    rows = [finding("agreement", "attention–gradient", 0.3), finding("agreement", "gradient–deletion", 0.5)]
    (axes,) = draw_agreement(numbers(*rows)).axes
    published = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert published == [0.389, 0.612]
    ours = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert ours == [0.3, 0.5]


def test_a_panel_has_a_bar_for_every_accuracy():
    rows = [
        finding("preset-attention", key, 0.8, 0.7, 0.9, corpus="sst")
        for key in ("uniform", "its own, learned", "this model's")
    ]
    rows += [finding("uniform-and-frozen", "learned", 0.8, 0.7, 0.9, corpus="sst")]
    (axes,) = draw_accuracies(numbers(*rows)).axes
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == ["learned", "bag, uniform", "bag, its own, learned", "bag, this model's"]
    assert axes.get_title() == "SST, accuracy"
