"""The stage of all tests of this folder: it is built once, and restored before each of them."""

from collections.abc import Iterator

import pytest

from tests.bad_inputs.stage import Stage


@pytest.fixture(scope="package")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("stage")
    (folder / "here").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "here" / "state"))
        patch.chdir(folder / "here")
        yield Stage.build(folder)


@pytest.fixture
def stage(template: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("XDG_STATE_HOME", str(template.here / "state"))
    monkeypatch.chdir(template.here)
    template.restore()
    return template
