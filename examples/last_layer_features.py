"""Features of the last layer of a language model as the input of a classifier: no layer of the model is trained.

    python examples/last_layer_features.py

GPT-2 turns every token into a vector that depends on the tokens before it. The vector of the last token in the last
layer is used as a feature of the whole text, and a logistic regression is fitted to it. The adjectives of the test
sentences do not occur in the sentences that the regression is fitted to, so it must use what the model knows of words.
"""

from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import heedful

OPENINGS = ["This film was", "The plot of the movie is", "I thought the acting was", "The story was really", "It is a"]
ADJECTIVES = {
    "fit": (
        ["awful", "terrible", "boring", "horrible", "stupid", "bad", "weak", "annoying"],
        ["great", "wonderful", "excellent", "brilliant", "beautiful", "good", "strong", "touching"],
    ),
    "test": (
        ["dull", "poor", "ridiculous", "worst", "lame", "pathetic"],
        ["amazing", "perfect", "fantastic", "superb", "funny", "enjoyable"],
    ),
}


def sentences(part: str) -> tuple[list[str], list[int]]:
    """Sentences that end in an adjective, and 0 or 1 for a bad or a good one."""
    pairs = [
        (f"{opening} {word}", label)
        for label, words in enumerate(ADJECTIVES[part])
        for word in words
        for opening in OPENINGS
    ]
    return [text for text, _ in pairs], [label for _, label in pairs]


def features(model: Any, texts: list[str]) -> np.ndarray:
    """The vector of the last token of every text in the last layer, as rows."""
    network = model.network
    with torch.no_grad():
        ids = [torch.from_numpy(model.encode(text).ids)[None] for text in texts]
        return np.stack([network.states(network.embed(row))[0, -1].numpy() for row in ids])


def main() -> None:
    """Fits the regression, and tests it on adjectives that it has not seen."""
    model = heedful.load("writer")
    (texts, labels), (new_texts, new_labels) = sentences("fit"), sentences("test")
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    classifier.fit(features(model, texts), labels)
    print(f"fitted to {len(texts)} sentences: {classifier.score(features(model, texts), labels):.0%} right")
    right = classifier.score(features(model, new_texts), new_labels)
    print(f"{len(new_texts)} sentences of other adjectives: {right:.0%} right")
    for text in ("This film was not good", "What a masterpiece", "A waste of time"):
        print(f"{text}: {classifier.predict_proba(features(model, [text]))[0, 1]:.2f} positive")


if __name__ == "__main__":
    main()
