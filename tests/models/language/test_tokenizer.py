from heedful.models.language.tokenizer import ByteTokenizer
from tests.families import CORPUS, build, byte_pairs


def test_it_reads_and_spells_like_the_hugging_face_tokenizer():
    ours, theirs = ByteTokenizer(build("own-gpt2").vocabulary), byte_pairs()
    for text in (*CORPUS, "日é 😀", "  two"):
        ids = theirs(text)["input_ids"]
        assert ours(text)["input_ids"] == ids
        names = ours.convert_ids_to_tokens(ids)
        assert names == theirs.convert_ids_to_tokens(ids)
        assert ours.convert_tokens_to_string(names) == theirs.convert_tokens_to_string(names)
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.convert_ids_to_tokens(7) == theirs.convert_ids_to_tokens(7)
