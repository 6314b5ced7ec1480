import pytest

from heedful.errors import Unsupported
from heedful.models.language import check_writes
from tests.families import build


def test_a_classifier_is_refused_as_a_writer_in_a_sentence():
    with pytest.raises(Unsupported, match="does not write text"):
        check_writes(build("bert"))
