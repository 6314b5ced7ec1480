import pickle
from functools import partial

from heedful.experiments.debate.classic_runs import ClassicModel, ProbeRun, _plain, _trained, corpus_of
from heedful.experiments.debate.probes import _full_runs
from heedful.experiments.workspace import Workspace


def test_no_two_runs_of_the_full_form_share_a_file(tmp_path):
    runs = [*_full_runs()]
    assert len({run.key for run in runs}) == len(runs)
    models = {run.model for run in runs}
    assert len({model.key for model in models}) == len(models)
    assert all(corpus_of(Workspace(tmp_path, quick=False), model.corpus) for model in models)


def test_a_key_names_all_that_differs():
    model = ClassicModel("sst", "average", "dot", 0.3, 2)
    assert model.key == "sst-average-dot-0.3-2"
    assert ProbeRun(model, ("agreement",), 10).key == "sst-average-dot-0.3-2-agreement-1"


def test_another_process_can_have_the_workspace_and_the_work(tmp_path):
    plain = _plain(Workspace(tmp_path, progress=lambda *_: None))
    assert pickle.dumps(partial(_trained, plain))
    assert plain.folder == tmp_path
    assert plain.progress(1, 2) is None
