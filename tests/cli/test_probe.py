"""`heedful probe` as a newcomer types it, good and bad."""

import json
from dataclasses import replace

import pytest

import heedful
from heedful.evaluation.probes.permuted import Permuted
from heedful.run_folder import RunFolder, unsealed

TEXTS = (
    "the film was good and very bright",
    "a bad story , but not a dull plot !",
    "an actor was not very good",
    "the plot was dull and the actor bad",
    "very good film , bright and good story",
    "a good plot , a good actor",
)
LABELS = ("positive", "negative", "negative", "negative", "positive", "positive")


@pytest.fixture
def files(tmp_path, monkeypatch, tiny):
    """A folder with texts, labelled texts, and the tiny model."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    tiny.save(tmp_path / "tiny.safetensors", {})
    return tmp_path


def table(rows):
    return "comment,verdict\n" + "".join(f'"{text}",{label}\n' for text, label in rows)


FILES = {
    "texts.txt": "\n".join(TEXTS),
    "labelled.csv": table(zip(TEXTS, LABELS, strict=True)),
    "one.txt": "a fine film\n",
    "words.txt": "good\nbad\ndull\nbright\n",
    "empty.txt": "\n  \n",
    "blank.csv": 'text,label\n"good film",1\n" ",0\n',
    "file": "",
}
TINY = ("--model", "tiny.safetensors", "--label-column", "none")
QUICK = ("texts.txt", "--model", "tiny.safetensors", "--tests", "permuted", "--n-permutations", "3")
TRAINS = ("--tests", "deceived", "--n-epochs", "1", "--label-column", "verdict", "--model", "tiny.safetensors")


def stop_in(monkeypatch, index):
    """Ctrl-C while the text of this index is probed."""
    real = Permuted._of_text

    def stopped(self, inquiry, number):
        if number == index:
            raise KeyboardInterrupt
        return real(self, inquiry, number)

    monkeypatch.setattr(Permuted, "_of_text", stopped)


def test_a_file_of_texts_gets_a_verdict_and_a_sentence_per_probe(heedful_command, files):
    code, out, err = heedful_command("probe", *QUICK[:3], "--tests", "permuted,identifiability")
    assert (code, err) == (0, "Read 6 texts from texts.txt, one per line.\n")
    assert "texts.txt, 6 texts" in out
    assert "Saying that attention matters" in out
    for name in ("permuted", "identifiability"):
        assert sum(line.startswith(f" {name} ") for line in out.splitlines()) == 1


def test_the_report_is_that_of_the_same_call_in_python(heedful_command, files):
    code, out, _ = heedful_command("probe", *QUICK, "--seed", "3", "-n", "5", "--unit", "token", "--json")
    report = heedful.probe(
        heedful.load("tiny.safetensors"),
        list(TEXTS),
        "permuted",
        5,
        unit="token",
        seed=3,
        n_permutations=3,
        progress=False,
    )
    assert code == 0
    # The command knows what the file is called.
    assert json.loads(out) == json.loads(json.dumps(replace(report, dataset="texts.txt").as_dict()))
    assert json.loads(out)["probes"][0]["settings"]["n_permutations"] == 3


def test_a_folder_gets_the_report_and_a_second_run_reads_it(heedful_command, files, monkeypatch):
    code, out, err = heedful_command("probe", *QUICK, "--out", "run", "--json")
    assert code == 0
    assert "Wrote report.html, report.json in run" in err
    assert unsealed((files / "run" / "report.json").read_text()) == json.loads(out)
    stop_in(monkeypatch, 0)
    assert heedful_command("probe", *QUICK, "--out", "run", "--json")[:2] == (0, out)


def test_the_same_command_resumes_a_stopped_run(heedful_command, files, monkeypatch):
    monkeypatch.setattr("heedful.evaluation.probes.inquiry._AT_ONCE", 2)
    heedful_command("probe", *QUICK, "--out", "whole")
    with monkeypatch.context() as patched:
        stop_in(patched, 4)
        code, out, err = heedful_command("probe", *QUICK, "--out", "parts")
    assert (code, out) == (130, "")
    assert "stopped; the same command resumes it." in err
    assert len([*(files / "parts" / "steps").iterdir()]) == 2
    stop_in(monkeypatch, 3)
    assert heedful_command("probe", *QUICK, "--out", "parts")[0] == 0
    for name in ("report.json", "report.html"):
        assert (files / "parts" / name).read_bytes() == (files / "whole" / name).read_bytes()


def test_a_stopped_run_without_a_folder_says_how_it_could_resume(heedful_command, files, monkeypatch):
    stop_in(monkeypatch, 1)
    code, out, err = heedful_command("probe", *QUICK)
    assert (code, out) == (130, "")
    assert "with --out FOLDER a stopped run can be resumed" in " ".join(err.split())


@pytest.mark.slow
def test_probes_that_train_learn_from_the_texts_of_train(heedful_command, files):
    (files / "train.csv").write_text(table((f"{text} .", label) for text, label in zip(TEXTS, LABELS, strict=True)))
    code, out, err = heedful_command("probe", "labelled.csv", *TRAINS, "--train", "train.csv", "--json")
    assert code == 0, err
    assert err.count("Read 6 texts from") == 2
    (entry,) = json.loads(out)["probes"]
    assert entry["findings"]


def test_a_probe_that_is_refused_leaves_the_others(heedful_command, files):
    names = ("--tests", "permuted,deceived")
    code, out, _ = heedful_command("probe", "texts.txt", "--model", "tiny.safetensors", *names)
    assert code == 0
    text = " ".join(out.split())
    assert "deceived – did not run. This probe trains models; give texts with labels as `train`" in text
    assert "As an explanation that cannot be faked ? not decided no probe ran" in text


BAD = [
    (("texts.txt", "--tests", "permutd"), "There is no probe 'permutd'; did you mean 'permuted'"),
    (("texts.txt", "--tests", " , "), "No probe was named"),
    (("texts.txt", "--tests", "permuted", "--n-permutation", "3"), "did you mean 'n_permutations'"),
    (("texts.txt", "--n-permutations", "-3"), "needs n_permutations ≥ 1"),
    (("texts.txt", "--tolerance", "nan"), "a tolerance between 0 and 1"),
    (("texts.txt", "--unit", "letter"), "There is no unit 'letter'"),
    (("texts.txt", "--split", "tset"), "There is no split 'tset'"),
    (("texts.txt", "--seed", "-1"), "The seed must be a whole number ≥ 0"),
    (("texts.txt", "-n", "1"), "A report needs at least 2 texts; n is 1."),
    (("texts.txt", "--n-train", "1", *TINY[:2]), "n_train must be a whole number of at least 2"),
    (("texts.txt", "--tests", "deceived", *TINY[:2]), "This probe trains models; give texts with labels"),
    (("texts.txt", "--train", "imbd"), "There is no data set 'imbd'; did you mean 'imdb'"),
    (("texts.txt", "--train", "nowhere.csv"), "nowhere.csv cannot be read"),
    (("labelled.csv", *TRAINS, "--train", "labelled.csv"), "Every text to train on is also probed"),
    (("one.txt",), "A report needs at least 2 texts; one.txt has 1."),
    (("blank.csv", *TINY), "Only one text could be read: The text contains no words."),
    (("empty.txt",), "empty.txt contains no text"),
    (("nowhere.txt",), "nowhere.txt cannot be read"),
    (("imbd",), "There is no data set 'imbd'; did you mean 'imdb'"),
    (("texts.txt", "--file", "texts.txt", "imdb"), "Give a data set or --file, not both."),
    (("sst2", "--text-column", "a"), "--text-column and --label-column belong to a file"),
    (("texts.txt", "--out", "file"), "file cannot be used as a folder"),
    (("texts.txt", "--device", "nonsense"), "This machine has no device 'nonsense'"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_a_mistake_is_one_sentence_and_exit_code_two(heedful_command, files, words, sentence):
    code, out, err = heedful_command("probe", *words)
    assert (code, out) == (2, "")
    *before, message = err.splitlines()
    assert message.startswith("heedful: ")
    assert sentence in message
    assert {line.partition(" ")[0] for line in before} <= {"Read"}


def test_texts_of_one_word_decide_nothing(heedful_command, files):
    code, out, _ = heedful_command("probe", "words.txt", *QUICK[1:])
    assert code == 0
    assert "? not decided. No text has two words" in " ".join(out.split())


def test_a_folder_of_another_run_is_refused_and_keeps_its_report(heedful_command, files):
    assert heedful_command("probe", *QUICK, "--out", "run")[0] == 0
    before = (files / "run" / "report.json").read_bytes()
    code, _, err = heedful_command("probe", *QUICK, "--seed", "1", "--out", "run")
    assert code == 2
    assert "run contains another run, which differs in seed (0 there, 1 here)" in err
    assert (files / "run" / "report.json").read_bytes() == before


def test_a_folder_in_which_another_process_works_is_refused(heedful_command, files):
    with RunFolder(files / "run").alone():
        code, _, err = heedful_command("probe", *QUICK, "--out", "run")
    assert code == 2
    assert "Another run works in run" in err


def test_the_help_gives_an_example(heedful_command):
    code, out, _ = heedful_command("probe", "--help")
    assert code == 0
    assert "heedful probe imdb" in out


def test_a_file_and_a_data_set_together_are_refused(heedful_command, files):
    code, _, said = heedful_command("probe", "labelled.csv", "sst", "--model", "tiny.safetensors")
    assert (code, said) == (2, "heedful: Give one file or one data set; labelled.csv and sst were given.\n")
