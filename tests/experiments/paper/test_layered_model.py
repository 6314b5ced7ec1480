import pytest

from heedful.experiments.paper.layered_model import draw_layers, layered_claims, layered_parts
from heedful.experiments.workspace import Workspace
from heedful.models.transformer_file import save_transformer
from tests.families import build


@pytest.fixture
def workspace(tmp_path):
    save_transformer(build("transformer"), tmp_path / "deep.safetensors")
    return Workspace(tmp_path, model_name=str(tmp_path / "deep.safetensors"))


def test_the_boxes_are_the_layers_with_their_shapes(workspace):
    numbers = layered_parts(workspace, "good film , not bad")
    assert [row["what"] for row in numbers["parts"]] == [
        *("text", "embeddings e", "layer 1, attention", "layer 2, attention", "layer 3, attention", "f")
    ]
    config = workspace.model.network.config
    n = config.T_max
    assert numbers["parts"][2]["shape"] == f"2 heads, each {n} × {n}\nd_att 4, d_out 4"
    (sizes,) = numbers["sizes"]
    assert sizes == {
        **{"layers": 3, "heads": 2, "d_e": 8},
        "weights": sum(weight.numel() for weight in workspace.model.network.parameters()),
    }
    f = workspace.model(["good film , not bad"])[0].max()
    assert numbers["output"][0]["f"] == pytest.approx(f, abs=1e-9)
    texts = [text.get_text() for text in draw_layers(numbers).axes[0].texts]
    assert all(any(row["what"] in text for text in texts) for row in numbers["parts"])
    assert [claim.verdict for claim in layered_claims(numbers)] == ["new", "not measured"]
