"""Small parquet files in a folder of their own, and the real ones where they are at hand."""

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

REAL = os.environ.get("HEEDFUL_DATA")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes columns to a file of the folder that HEEDFUL_DATA then names."""

    def to_file(file, **columns):
        monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        parquet.write_table(pa.table(columns), path)
        return path

    return to_file


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Writes columns to a file that the hub's client then finds; from then on no folder is named."""
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    kept = {}

    def download(repository, file, repo_type, revision, local_files_only=False):
        assert repo_type == "dataset"
        if (repository, file, revision) not in kept:
            raise LocalEntryNotFoundError(f"{repository}/{file} at {revision}")
        return str(kept[repository, file, revision])

    def unreachable(url):
        raise ConnectionError(url)

    def publish(repository, file, revision="main", **columns):
        monkeypatch.delenv("HEEDFUL_DATA", raising=False)
        path = tmp_path / f"{len(kept)}.parquet"
        parquet.write_table(pa.table(columns), path)
        kept[repository, file, revision] = path

    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", unreachable)
    return publish


@pytest.fixture
def needs():
    """Skips the test where the folder that HEEDFUL_DATA names lacks the real files; otherwise gives that folder."""

    def files(kind):
        if not REAL or not Path(REAL, kind).is_dir():
            pytest.skip(reason=f"needs the real data: name a folder with {kind}/*.parquet in HEEDFUL_DATA")
        return Path(REAL)

    return files
