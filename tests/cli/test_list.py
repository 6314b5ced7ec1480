"""What `heedful list` prints."""

import heedful


def test_list_names_every_metric_in_one_line_each(heedful_command):
    code, out, _ = heedful_command("list")
    assert code == 0
    for name, metric in heedful.metrics().items():
        (line,) = [line for line in out.splitlines() if line.startswith(f"{name} ")]
        first = metric.__doc__.splitlines()[0]
        assert line.split(maxsplit=2) == [name, metric.better, first]


def test_list_shows_all_there_is_to_know_of_a_metric(heedful_command):
    for name, metric in heedful.metrics().items():
        code, out, _ = heedful_command("list", name)
        assert code == 0
        for sentence in (metric.question, metric.source, metric.not_for, f"{metric.better} is better"):
            assert sentence in out
    code, out, _ = heedful_command("list", "deletion")
    assert "--n-steps 10" in out
    assert "did you mean 'deletion'" in heedful_command("list", "deleton")[2]


def test_list_shows_one_method_with_its_settings(heedful_command):
    code, out, _ = heedful_command("list", "lime")
    assert code == 0
    assert "--n-samples 5000" in out


def test_list_names_every_method_in_one_line_each(heedful_command):
    code, out, _ = heedful_command("list")
    assert code == 0
    for name in (*heedful.methods(), *heedful.datasets()):
        assert sum(line.startswith(f"{name} ") for line in out.splitlines()) == 1


def test_list_shows_methods_in_groups_and_marks_the_default_ones(heedful_command):
    lines = heedful_command("list")[1].splitlines()
    groups = [
        lines.index(f"  {group}") for group in ("attention", "gradients", "surrogates", "Shapley values", "removal")
    ]
    assert groups == sorted(groups)
    marked = [line.split()[0] for line in lines[: groups[-1] + 5] if " * " in line and not line.startswith("Methods")]
    lime, shapley = ["lime-exact", "lime"], ["shapley-exact", "shapley-sampled"]
    assert marked == ["attention-mean", "gradient-x-input", "integrated-gradients", *lime, *shapley, "leave-one-out"]


def test_list_names_every_probe_with_its_question(heedful_command):
    lines = heedful_command("list")[1].splitlines()
    for name, probe in heedful.probes().items():
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
        assert line.split(maxsplit=1) == [name, probe.question]


def test_list_shows_all_there_is_to_know_of_a_probe(heedful_command):
    code, out, _ = heedful_command("list", "deceived")
    probe = heedful.probes()["deceived"]
    assert code == 0
    for sentence in (probe.question, probe.source, probe.use, probe.shows, probe.does_not_show):
        assert sentence in out
    assert "Trains models: yes" in out
    assert "--n-words 20" in out
    assert "Trains models: no" in heedful_command("list", "permuted")[1]
