"""`heedful trust` as a newcomer types it, good and bad; and the catalogue of metrics."""

import json
import sys

import pytest
from pyarrow import parquet

import heedful
from heedful.evaluation import trust as measuring
from heedful.run_folder import unsealed
from tests.families import network_of

TEXTS = (
    "a fine film with great actors",
    "this was a bad and dull story",
    "I loved it , great fun",
    "terrible plot , awful acting",
    "not bad at all , but too long",
    "the best story of the year",
)
USUAL = ("--methods", "leave-one-out,attention-mean", "--metrics", "deletion,evidence-against")


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(TEXTS), encoding="utf-8")
    return path


def stop_after(monkeypatch, n):
    """Ctrl-C while text number n + 1 is being measured."""
    real, done = measuring.measure_text, []

    def measured(*given):
        if len(done) == n:
            raise KeyboardInterrupt
        done.append(real(*given))
        return done[-1]

    monkeypatch.setattr(measuring, "measure_text", measured)


def test_a_file_of_texts_gets_a_table_and_a_verdict(heedful_command, texts):
    code, out, err = heedful_command("trust", "--file", texts, *USUAL)
    assert (code, err) == (0, "Read 6 texts from texts.txt, one per line.\n")
    assert "texts.txt, 6 texts" in out
    for name in ("leave-one-out", "attention-mean", "random", "deletion ↑", "To rank words:"):
        assert name in out
    assert out.count("needs signed scores") == 1


@pytest.mark.slow
def test_the_report_is_that_of_the_same_call_in_python(heedful_command, texts):
    given = (*USUAL, "--target", "positive", "--scale", "log-probability", "--n-steps", "4", "--seed", "3", "-n", "5")
    code, out, _ = heedful_command("trust", "--file", texts, *given, "--json")
    report = heedful.trust(
        heedful.load("paper"),
        list(TEXTS),
        ["leave-one-out", "attention-mean"],
        ["deletion", "evidence-against"],
        5,
        target="positive",
        scale="log-probability",
        seed=3,
        n_steps=4,
    )
    assert code == 0
    printed, wanted = json.loads(out), json.loads(json.dumps(report.as_dict()))
    # The command knows what the file and the model are called.
    assert printed.pop("dataset") == "texts.txt"
    assert printed.pop("asked") == {**wanted.pop("asked"), "model": "paper"}
    assert wanted.pop("dataset") == "the given texts"
    assert printed == wanted
    assert json.loads(out)["metrics"][0]["settings"]["n_steps"] == 4


def test_a_folder_gets_the_report_and_its_numbers(heedful_command, texts, tmp_path):
    code, out, err = heedful_command("trust", "--file", texts, *USUAL, "--out", tmp_path / "run", "--json")
    assert code == 0
    assert "Wrote report.html, report.json, measurements.parquet, scores.parquet in" in err
    assert unsealed((tmp_path / "run" / "report.json").read_text()) == json.loads(out)
    cells = {(cell["method"], cell["metric"]): cell["mean"] for cell in json.loads(out)["cells"]}
    rows = parquet.read_table(tmp_path / "run" / "measurements.parquet").to_pylist()
    for (method, metric), mean in cells.items():
        values = [row["value"] for row in rows if (row["method"], row["metric"]) == (method, metric)]
        assert len(values) == 6
        present = [value for value in values if value is not None]
        assert (mean is None) == (not present)
        assert mean is None or sum(present) / len(present) == pytest.approx(mean)


def test_what_a_language_model_writes_is_explained(heedful_command, tmp_path):
    network, tokenizer = network_of("gpt2")
    network.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("the film was good and\na bad story , but\nnot a dull actor", encoding="utf-8")
    given = ("--methods", "leave-one-out", "--model", tmp_path / "model", "--unit", "token")
    code, out, err = heedful_command("trust", prompts, *given, "--write", "3", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["asked"]["explains"] == "the log-probability of the output"
    assert report["asked"]["write"] == 3
    assert {"top-drop", "linear-datamodelling"} < {metric["name"] for metric in report["metrics"]}
    code, _, err = heedful_command("trust", prompts, "--write", "3")
    assert code == 2
    assert "This model does not write text" in err


def test_without_pyarrow_the_rest_is_written(heedful_command, texts, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = heedful_command("trust", "--file", texts, *USUAL, "--out", tmp_path / "run")
    assert code == 0
    assert "Wrote report.html, report.json in" in err
    assert "needs pyarrow" in err


@pytest.mark.slow
def test_the_same_command_resumes_a_stopped_run(heedful_command, texts, tmp_path, monkeypatch):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    heedful_command("trust", "--file", texts, *USUAL, "--out", whole)
    with monkeypatch.context() as patched:
        stop_after(patched, 3)
        code, out, _ = heedful_command("trust", "--file", texts, *USUAL, "--out", parts)
    assert code == 0
    assert "Stopped by the user after 3 of 6 texts." in out
    assert "3 texts" in (parts / "report.html").read_text(encoding="utf-8")
    journal = (parts / "documents.jsonl").read_text()
    assert journal.count("\n") == 3
    with monkeypatch.context() as patched:
        stop_after(patched, 3)
        code, _, _ = heedful_command("trust", "--file", texts, *USUAL, "--out", parts)
    assert code == 0
    assert (parts / "documents.jsonl").read_text().startswith(journal)
    assert (parts / "report.json").read_bytes() == (whole / "report.json").read_bytes()


@pytest.mark.slow
def test_an_incomplete_line_is_measured_again(heedful_command, texts, tmp_path):
    run = ("trust", "--file", texts, *USUAL, "--out", tmp_path / "run")
    heedful_command(*run)
    report = (tmp_path / "run" / "report.json").read_bytes()
    journal = tmp_path / "run" / "documents.jsonl"
    journal.write_bytes(journal.read_bytes()[:-200])
    assert heedful_command(*run)[0] == 0
    assert journal.read_text().count("\n") == 6
    assert (tmp_path / "run" / "report.json").read_bytes() == report


def test_stopped_before_two_texts_there_is_no_report(heedful_command, texts, tmp_path, monkeypatch):
    stop_after(monkeypatch, 1)
    code, out, err = heedful_command("trust", "--file", texts, *USUAL, "--out", tmp_path / "run")
    assert (code, out) == (130, "")
    assert "stopped before two texts were measured" in err
    assert not (tmp_path / "run" / "report.html").exists()


def test_lines_of_json_bring_labels_and_rationales(heedful_command, tmp_path):
    lines = [
        {"text": "a fine film with great actors", "label": "positive", "rationale": [[2, 11]]},
        {"text": "this was a bad and dull story", "label": 0, "rationale": [[11, 14], [19, 23]]},
        {"text": "I loved it , great fun", "label": "negative"},
    ]
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    code, out, err = heedful_command(
        "trust", "--file", file, "--methods", "leave-one-out", "--metrics", "auprc", "--json"
    )
    assert code == 0, err
    report = json.loads(out)
    assert report["accuracy"] == pytest.approx(2 / 3)
    (reason,) = {reason for _, _, reason, _ in report["skipped"]}
    assert "no human rationale" in reason
    assert {cell["documents"] for cell in report["cells"]} == {2}


def test_a_table_is_judged_by_its_texts_and_not_by_its_lines(heedful_command, tmp_path):
    (tmp_path / "c.csv").write_text("comment,toxic\n" + "".join(f'"{text}",1\n' for text in TEXTS))
    code, out, err = heedful_command("trust", tmp_path / "c.csv", *USUAL, "--json")
    assert (code, err) == (
        0,
        f"Read {len(TEXTS)} texts from c.csv: text column 'comment', label column 'toxic', found by name.\n",
    )
    report = json.loads(out)
    assert report["accuracy"] is not None
    listed = tmp_path / "c.txt"
    listed.write_text("\n".join(TEXTS))
    same = json.loads(heedful_command("trust", listed, *USUAL, "--json")[1])
    assert [cell["mean"] for cell in same["cells"]] == [cell["mean"] for cell in report["cells"]]


def test_known_words_may_come_from_a_file(heedful_command, texts, tmp_path):
    (tmp_path / "gold.txt").write_text("great\nbad, film\n")
    result = [
        heedful_command("trust", "--file", texts, "--methods", "leave-one-out", "--metrics", "gold-recall", *more)
        for more in (("--gold", "great,bad,film", "--json"), ("--gold", f"@{tmp_path / 'gold.txt'}", "--json"))
    ]
    assert result[0][0] == 0
    assert result[0] == result[1]


def test_scores_of_other_tools_are_included(heedful_command, texts, tmp_path):
    rows = [{"text": text, "name": "length", "scores": [len(word) for word in text.split()]} for text in TEXTS]
    file = tmp_path / "others.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    code, out, err = heedful_command("trust", "--file", texts, *USUAL, "--others", file, "--json")
    assert code == 0, err
    report = json.loads(out)
    (cell,) = [c for c in report["cells"] if c["method"] == "length (read)" and c["metric"] == "deletion"]
    assert cell["documents"] == 6
    file.write_text(json.dumps({"text": TEXTS[0], "name": "length", "scores": [1, 2, 3]}))
    code, _, err = heedful_command("trust", "--file", texts, *USUAL, "--others", file)
    assert code == 2
    assert "others.jsonl, entry 1: 3 numbers were given" in err


def test_a_text_without_a_word_is_named_and_skipped(heedful_command, tmp_path):
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(json.dumps({"text": text}) for text in (*TEXTS[:3], "", "😀")))
    code, out, _ = heedful_command("trust", "--file", file, *USUAL)
    assert code == 0
    assert "3 of 5 texts" in out
    assert "The text contains no words" in out


BAD = [
    (("--file", "empty.txt"), "empty.txt contains no text; write one text per line."),
    (("--file", "one.txt"), "A report needs at least 2 texts"),
    (("--file", "nowhere.txt"), "nowhere.txt cannot be read"),
    (("--file", "texts.txt", "--metrics", "deletoin"), "There is no metric 'deletoin'; did you mean 'deletion'"),
    (("--file", "texts.txt", "--methods", "lyme"), "There is no method 'lyme'; did you mean 'lime'"),
    (("--file", "texts.txt", "--methods", " , "), "No method was named"),
    (("--file", "texts.txt", "--metrics", ""), "No metric was named"),
    (("--file", "texts.txt", "--target", "great"), "There is no class 'great'. Known: negative, positive."),
    (("--file", "texts.txt", "--against", "7"), "There is no class 7"),
    (("--file", "texts.txt", "--unit", "letter"), "There is no unit 'letter'"),
    (("--file", "texts.txt", "--scale", "odds"), "There is no scale 'odds'"),
    (("--file", "texts.txt", "--split", "tset"), "There is no split 'tset'; did you mean 'test'"),
    (("--file", "texts.txt", "--n-sample", "9"), "did you mean 'n_samples'"),
    (("--file", "texts.txt", "-n", "1"), "A report needs at least 2 texts"),
    (("--file", "texts.txt", "--gold", ","), "gold is empty"),
    (("--file", "texts.txt", "--gold", "@nowhere"), "nowhere cannot be read"),
    (("--file", "texts.txt", "--others", "nowhere.jsonl"), "nowhere.jsonl cannot be read"),
    (("--file", "texts.txt", "imdb"), "Give a data set or --file, not both."),
    (("imbd",), "There is no data set 'imbd'; did you mean 'imdb'"),
    (("--file", "json.jsonl"), "json.jsonl, line 2: invalid JSON."),
    (("--file", "list.jsonl"), 'list.jsonl, line 1: a line must be a dictionary such as {"text"'),
    (("--file", "field.jsonl"), "it is not obvious which column has the texts"),
    (("--file", "ragged.csv"), "ragged.csv, line 3: 3 fields, but the first line names 2 columns."),
    (("nowhere.csv",), "nowhere.csv cannot be read"),
    (("sst2", "--text-column", "a"), "--text-column and --label-column belong to a file"),
    (("--file", "text.jsonl"), "text.jsonl, row 1: a text must be a string; got 3."),
    (
        ("--file", "label.jsonl"),
        "the label must be a class of the model, by number or name (negative, positive); got 2",
    ),
    (("--file", "unlabelled.jsonl"), "a rationale needs a label"),
    (("--file", "spans.jsonl"), "a rationale must be spans of characters such as [[0, 4], [9, 15]]"),
    (("--file", "texts.txt", "--out", "texts.txt"), "texts.txt cannot be used as a folder"),
]
FILES = {
    "empty.txt": "\n  \n",
    "one.txt": "a fine film\n",
    "texts.txt": "\n".join(TEXTS),
    "json.jsonl": '{"text": "a fine film"}\nnot json',
    "list.jsonl": '["a fine film"]',
    "field.jsonl": '{"teext": "a fine film", "note": "by me"}',
    "ragged.csv": "text,label\na fine film,1\na fine, long film,1\n",
    "text.jsonl": '{"text": 3}\n{"text": 4}',
    "label.jsonl": '{"text": "a fine film", "label": 2}\n{"text": "a dull film", "label": true}',
    "unlabelled.jsonl": '{"text": "a fine film", "rationale": [[0, 1]]}',
    "spans.jsonl": '{"text": "a fine film", "label": 1, "rationale": [0, 1]}',
}


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_a_mistake_is_one_sentence_and_exit_code_two(heedful_command, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    code, out, err = heedful_command("trust", *words)
    assert (code, out) == (2, "")
    *before, message = err.splitlines()
    assert message.startswith("heedful: ")
    assert sentence in message
    assert [line.partition(" ")[0] for line in before] in ([], ["Read"])


def test_a_folder_of_another_run_is_refused(heedful_command, texts, tmp_path):
    run = ("trust", "--file", texts, "--methods", "attention-mean", "--out", tmp_path / "run", "--metrics")
    assert heedful_command(*run, "deletion")[0] == 0
    before = (tmp_path / "run" / "report.json").read_bytes()
    code, _, err = heedful_command(*run, "insertion")
    assert code == 2
    assert "contains another run, which differs in metrics; choose another folder." in err
    assert (tmp_path / "run" / "report.json").read_bytes() == before


@pytest.mark.parametrize("broken", ["not json\n", '{"strange": 1}\n'])
def test_a_broken_journal_is_named_with_its_line(heedful_command, texts, tmp_path, broken):
    run = ("trust", "--file", texts, "--methods", "attention-mean", "--metrics", "deletion", "--out", tmp_path / "run")
    heedful_command(*run)
    journal = tmp_path / "run" / "documents.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join([*lines[:2], broken, *lines[3:]]))
    code, _, err = heedful_command(*run)
    assert code == 2
    assert "Line 3 of" in err
    assert "is damaged" in err


def test_the_help_gives_an_example(heedful_command):
    code, out, _ = heedful_command("trust", "--help")
    assert code == 0
    assert "heedful trust imdb -n 200" in out


def test_two_models_have_a_report_and_a_folder_each(heedful_command, tmp_path, texts, tiny):
    tiny.save(tmp_path / "tiny.safetensors", {})
    models = ("--model", "paper", "--model", tmp_path / "tiny.safetensors")
    code, out, err = heedful_command("trust", "--file", texts, *USUAL, *models, "--out", tmp_path / "both")
    assert code == 0, err
    assert out.count("Trust: ") == 2
    for folder in ("paper", "tiny-safetensors"):
        assert (tmp_path / "both" / folder / "report.html").exists()
    code, _, err = heedful_command("trust", "--file", texts, *models, "--others", texts)
    assert code == 2
    assert "give one --model" in err
