"""A model with new initial weights, to train it once more."""

from typing import Any, TypeVar

from heedful.errors import Unsupported
from heedful.family import check_seed
from heedful.models import Model
from heedful.models.classic.classifier import Classic
from heedful.models.classic.network import initial_classic
from heedful.models.network import Network
from heedful.models.single_layer import SingleLayer
from heedful.models.training import initial_weights
from heedful.models.transformer import Transformer, initial_network

Trained = TypeVar("Trained", bound=Model)


def check_trained_here(model: Model) -> None:
    """Refuses a model that cannot be trained again."""
    if not isinstance(model, SingleLayer | Transformer | Classic):
        raise Unsupported("This model was trained elsewhere; training again needs a model of `heedful train`.")


def fresh(model: Trained, seed: int) -> Trained:
    """A model of the same kind, settings, words and classes with the weights with which its own training begins.

    They are in single precision, on the device of the model.
    """
    check_seed(seed)
    check_trained_here(model)
    own: Any = model
    n_words, device, about = len(own.vocabulary), own.network.W_e.device, (own.vocabulary, own.classes)
    if isinstance(model, SingleLayer):
        weights = initial_weights(model.network.config, n_words, seed)
        return type(model)(Network(model.network.config, weights).to(device), *about)
    if isinstance(model, Transformer):
        return type(model)(initial_network(model.network.config, n_words, seed).to(device), *about)
    return type(own)(initial_classic(own.network.config, n_words, seed).to(device), *about)
