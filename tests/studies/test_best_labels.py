from studies.features.best_labels import best_labels, row_of


def described(feature, values, auroc=(0.99, 0.95, 1.0), precision=0.9, aspect="token", n_texts=200, threshold=0.0):
    rule = {"aspect": aspect, "values": values, "auroc": auroc, "precision": [precision, 0.5, 1.0]}
    excerpt = {"tokens": ["It", " was", " a", " good", "\n", "film"], "peak": 3}
    rule |= {"recall": [0.75, 0.5, 1.0], "threshold": threshold}
    return {"feature": feature, "rules": [rule], "n_texts": n_texts, "excerpts": [excerpt]}


def test_features_are_chosen_by_rule_and_share_no_word():
    features = [
        described(0, ["good"], precision=0.5),
        described(1, ["plot", "Good"]),
        described(2, ["bad"], auroc=(0.99, 0.85, 1.0)),
        described(3, ["bad"], auroc=(1.0, None, None)),
        described(4, ["bad"], aspect="previous token"),
        described(5, ["no", "bad"]),
        described(6, ["bad"], n_texts=99),
        described(7, ["film"], precision=0.95),
        {"feature": 8, "rules": [], "n_texts": 500},
    ]
    assert [own["feature"] for own in best_labels(features, 5)] == [7, 1]
    assert [own["feature"] for own in best_labels(features, 1)] == [7]


def test_a_row_has_the_label_its_numbers_and_the_strongest_token():
    assert row_of(described(7, ["good", "Good"], threshold=1.5)) == (
        "| 7 | good · Good (strong) | 0.990 [0.950, 1.000] | 0.90 | 0.75 | … It was a **good** film … |"
    )
