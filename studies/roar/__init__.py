"""Remove and retrain (ROAR), and keep and retrain: does a model learn worse without the words a method points at?

    python -m studies.roar --out runs/roar [--seeds 3] [--device cuda --at-once 46] [--workers 16] [--quick]

Every review of IMDB is explained, its words are ranked by |score|, and for each share τ of 0, 10, … 100 % the strongest
words (remove) or the weakest (keep) are imputed, in training, validation and test alike: by the mean vector of the
words of the training texts, or with `--imputation unknown` by the unknown word. The paper's model is then trained anew
from the same initial weights and tested. Under `remove` a method that finds what the data say of the label has a curve
that falls faster than that of `random`; under `keep` one that falls more slowly.

The files of this folder: `rankings.py` (which words are strongest), `retraining.py` (what is replaced, and many
trainings at once), `ledger.py` (the results, one line each), `plan.py` (which models there are to train), `report.py`
(curves, table, figure), `study.py` (all of it), `__main__.py` (the command).

Reference: Hooker, Erhan, Kindermans & Kim, *A Benchmark for Interpretability Methods in Deep Neural Networks*, NeurIPS
2019, arXiv:1806.10758. Keep and retrain is of its supplement.
Differs from the source: words of a review instead of pixels; the mean of the words' vectors, which are trained, so that
the mean moves with them, instead of the mean of a channel; a score counts by its size, whatever its sign, for every
method. The shares are those of the lecture; at 100 % every word is gone, and accuracy is that of the length alone.

What it cannot say:
- The retrained model is another model. It may learn from words that the explained one did not use, so the curves are
  about what the data say of the label and not about what the explained model does.
- Words repeat each other. Where many words say the same, removing the right ones costs little accuracy, and a faithful
  explanation may look no better than chance.
- A replaced word leaves a trace. Which words are left, and where, was decided by a model that had seen the whole
  review, and the retrained model can learn from that; under `keep` accuracy may rise above that of all words.
"""
