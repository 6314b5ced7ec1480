from heedful.datasets.texts import Texts


def test_texts_have_the_length_of_their_list():
    assert len(Texts(("a", "b"), ("0", "1"), (None, None), "list")) == 2
