"""Files of SAELens read by heedful, and files of heedful read by SAELens: the same activations and reconstructions.

    PYTHON -m studies.features.parity_saelens_files

PYTHON is that of `parity_saelens`. SAELens stores a dictionary as a checkpoint, with what its training needs, and for
use, where both BatchTopK kinds are a `jumprelu`. Both are read. A checkpoint of these two kinds has no rule for single
rows; it is compared with what SAELens stores for use.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from sae_lens import SAE
from torch import Tensor

import heedful
from studies.features import parity_saelens
from studies.features.parity_saelens import D_E, LIMIT, N_ROWS, WIDTH, difference

THEIRS: dict[str, Callable[..., Any]] = {
    "standard": parity_saelens.standard,
    "topk": parity_saelens.topk,
    "batchtopk": parity_saelens.batchtopk,
    "jumprelu": parity_saelens.jumprelu,
    "matryoshka": parity_saelens.matryoshka,
}
OURS: dict[str, dict[str, Any]] = {
    "relu": {},
    "topk": {"k": 4},
    "batchtopk": {"k": 4.0},
    "jumprelu": {"k": 4.0},
    "matryoshka": {"k": 4.0, "passes": 0},
}


def rows() -> Tensor:
    """Rows whose mean is not 0, in single precision."""
    return torch.randn(N_ROWS, D_E, generator=torch.Generator().manual_seed(0)) + 0.5


def untrained(name: str) -> Any:
    """SAELens' own dictionary with random weights; the rows of W_dec have any length."""
    sae, rng = THEIRS[name](d_in=D_E, d_sae=WIDTH), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in ("W_enc", "b_enc", "W_dec", "b_dec"):
            weight = getattr(sae, parameter)
            weight.copy_(0.3 * torch.randn(weight.shape, generator=rng))
    if hasattr(sae, "topk_threshold"):
        sae.topk_threshold = torch.tensor(0.8, dtype=torch.float64)
    return sae


@torch.no_grad()
def apart(dictionary: heedful.features.Dictionary, sae: Any, x: Tensor) -> tuple[float, float]:
    """The differences between activations and reconstructions; SAELens' activations times the lengths of W_dec."""
    active, theirs = dictionary.encode(x), sae.encode(x)
    scaled = theirs if getattr(sae.cfg, "rescale_acts_by_decoder_norm", False) else theirs * sae.W_dec.norm(dim=1)
    return difference(active, scaled), difference(dictionary.decode(active), sae.decode(theirs))


def main() -> int:
    """Prints the table; 1 if a file is not read as it was written."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    x, worst = rows(), 0.0
    header = f"{'file':34}{'architecture':22}{'activations':>13}{'reconstruction':>16}"
    print(f"{header}\n{'-' * len(header)}")

    def line(name: str, sae: Any, dictionary: heedful.features.Dictionary) -> None:
        nonlocal worst
        active, rebuilt = apart(dictionary, sae, x)
        worst = max(worst, active, rebuilt)
        print(f"{name:34}{sae.cfg.architecture():22}{active:13.1e}{rebuilt:16.1e}")

    with tempfile.TemporaryDirectory() as folder:
        for name in THEIRS:
            use, checkpoint = Path(folder) / f"{name}-use", Path(folder) / f"{name}-checkpoint"
            untrained(name).save_inference_model(use)
            untrained(name).save_model(checkpoint)
            sae = SAE.load_from_disk(use)
            line(f"SAELens {name}, for use", sae, heedful.features.load(use))
            line(f"SAELens {name}, checkpoint", sae, heedful.features.load(checkpoint))
        for name, settings in OURS.items():
            ours = Path(folder) / f"ours-{name}"
            call: dict[str, Any] = {"n_rows": 20_000, "batch_size": 200, "progress": False, **settings}
            trained = heedful.features.fit(x.numpy(), WIDTH, name, **call)
            trained.save(ours, format="saelens")
            line(f"heedful {name}", SAE.load_from_disk(ours), trained)
    print(f"largest difference {worst:.1e}; {'equal' if worst <= LIMIT else 'DIFFERENT'} up to {LIMIT:g}")
    return int(not worst <= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
