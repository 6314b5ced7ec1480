"""Our side: `heedful.features.fit`."""

from typing import Any

import heedful
from benchmarks.features.side import Clock, Sizes, serve


def train(case: str, sizes: Sizes, clock: Clock) -> None:
    """One training with our defaults, but for the sizes; matryoshka also as its paper has it."""
    settings: dict[str, Any] = {} if case == "relu" else {"k": sizes.k if case == "topk" else float(sizes.k)}
    if case == "matryoshka":
        settings |= {"order": "index", "inner": "joint", "passes": 0, "first_k": 1.0}
    heedful.features.fit(
        sizes.rows(),
        sizes.width,
        case.partition(",")[0],
        n_rows=sizes.n_steps * sizes.batch_size,
        batch_size=sizes.batch_size,
        progress=lambda _done, _total: clock.tick(),
        **settings,
    )


if __name__ == "__main__":
    serve(train)
