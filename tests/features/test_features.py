import subprocess
import sys

import pytest

import heedful


def test_every_public_name_is_there():
    for name in heedful.features.__all__:
        assert getattr(heedful.features, name).__doc__
    assert set(heedful.features.__all__) <= set(dir(heedful.features))


def test_a_name_that_there_is_not_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'heedful.features' has no attribute 'dictionary_of'"):
        getattr(heedful.features, "dictionary_" + "of")


def test_importing_it_imports_no_torch():
    code = "import sys, heedful.features; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
