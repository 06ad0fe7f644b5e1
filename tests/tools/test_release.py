"""The checks of `make release` that need no environment of their own."""

import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.tools.tool_loader import ROOT, load_tool

COMMIT = "c825f7794ca10c7fad0ae5faa0742a53d7d8250f"
TRACKED = ["src/discreet/__init__.py", "src/discreet/py.typed", "src/discreet/report/page.css"]
METADATA = """\
Metadata-Version: 2.4
Name: discreet
Version: 0.3.0
Author: The Discreet authors
License-Expression: Apache-2.0
License-File: LICENSE
Keywords: privacy
Classifier: Typing :: Typed
Description-Content-Type: text/markdown
"""
FILES = {
    "discreet/__init__.py": "",
    "discreet/py.typed": "",
    "discreet/report/page.css": "p {}",
    "discreet/_built_version.toml": f"version = '0.3.0'\ncommit = 'g{COMMIT}'\ndirty = 'False'\n",
    "discreet-0.3.0.dist-info/METADATA": METADATA,
}


@pytest.fixture(scope="module")
def release() -> ModuleType:
    return load_tool("release")


def write_wheel(folder: Path, files: dict[str, str], name: str = "discreet-0.3.0-py3-none-any.whl") -> Path:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return folder / name


def test_a_wheel_with_every_file_and_all_metadata_passes(release: ModuleType, tmp_path: Path) -> None:
    release.check_wheel(write_wheel(tmp_path, FILES), TRACKED)


def test_a_wheel_without_a_data_file_is_refused(release: ModuleType, tmp_path: Path) -> None:
    files = {name: text for name, text in FILES.items() if name != "discreet/report/page.css"}
    with pytest.raises(release.ReleaseRefused, match=r"the wheel lacks discreet/report/page\.css"):
        release.check_wheel(write_wheel(tmp_path, files), TRACKED)


def test_a_wheel_with_tests_in_it_is_refused(release: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(release.ReleaseRefused, match=r"not in the package: tests/test_part\.py"):
        release.check_wheel(write_wheel(tmp_path, FILES | {"tests/test_part.py": ""}), TRACKED)


@pytest.mark.parametrize("field", ["Author", "License-Expression", "License-File", "Keywords", "Classifier"])
def test_a_wheel_without_a_field_of_its_metadata_is_refused(release: ModuleType, tmp_path: Path, field: str) -> None:
    lines = "".join(line for line in METADATA.splitlines(keepends=True) if not line.startswith(f"{field}:"))
    wheel = write_wheel(tmp_path, FILES | {"discreet-0.3.0.dist-info/METADATA": lines})
    with pytest.raises(release.ReleaseRefused, match=f"metadata lacks {field}"):
        release.check_wheel(wheel, TRACKED)


def test_every_data_file_of_the_package_is_named_for_the_wheel(release: ModuleType) -> None:
    """Before anything is built: what git has in the package and Python doesn't find by itself."""
    settings = release.tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    package = ROOT / "src" / "discreet"
    named = {
        path
        for module, patterns in settings.items()
        for pattern in patterns
        for path in package.joinpath(*module.split(".")[1:]).glob(pattern)
    }
    kinds = {".css", ".js", ".toml", ".npz", ".txt", ".md", ".json", ".pyi", ".typed"}
    data = {path for path in package.rglob("*") if path.suffix in kinds or path.name == "py.typed"}
    assert data - named == set()


def test_the_citation_names_the_licences_of_the_package(release: ModuleType) -> None:
    project = release.tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text().partition("license:\n")[2].partition("keywords:")[0]
    assert citation.replace("  - ", "").split() == project["license"].split(" AND ")
    assert all((ROOT / name).is_file() for name in project["license-files"])


def test_the_wheels_of_tree_and_sdist_must_be_the_same(release: ModuleType, tmp_path: Path) -> None:
    one = write_wheel(tmp_path / "a", FILES)
    release.check_same_wheels(one, write_wheel(tmp_path / "b", FILES))
    lost = FILES | {"discreet/_built_version.toml": "version = '0.3.0'\ncommit = 'None'\ndirty = 'False'\n"}
    with pytest.raises(release.ReleaseRefused, match=r"differ in discreet/_built_version\.toml"):
        release.check_same_wheels(one, write_wheel(tmp_path / "c", lost))
    with pytest.raises(release.ReleaseRefused, match=r"the sdist builds .*, and the tree other\.whl"):
        release.check_same_wheels(one, write_wheel(tmp_path / "d", FILES, "other.whl"))


def test_a_wheel_names_the_commit_it_was_built_from(release: ModuleType, tmp_path: Path) -> None:
    assert release.read_built(write_wheel(tmp_path, FILES)) == ("0.3.0", COMMIT, False)
    lost = FILES | {"discreet/_built_version.toml": "version = '0.3.0'\ncommit = 'None'\ndirty = 'False'\n"}
    with pytest.raises(release.ReleaseRefused, match="the wheel names no commit"):
        release.read_built(write_wheel(tmp_path / "lost", lost))


def test_a_tree_with_changes_is_refused(release: ModuleType) -> None:
    release.check_tree("")
    with pytest.raises(release.ReleaseRefused, match=r"uncommitted changes: README\.md, new\.py"):
        release.check_tree(" M README.md\n?? new.py\n")


@pytest.mark.parametrize(
    ("version", "tags", "why"),
    [
        ("0.3.0", ["v0.4.0"], "the tag says 0.4.0, and the build says 0.3.0"),
        ("0.3.0.dev12+gc825f7794", ["v0.3.0"], "the tag says 0.3.0"),
        ("0.9.0", ["v0.9.0"], "no dated section for 0.9.0"),
    ],
)
def test_a_version_that_tag_and_changelog_do_not_confirm_is_refused(
    release: ModuleType, version: str, tags: list[str], why: str
) -> None:
    with pytest.raises(release.ReleaseRefused, match=why):
        release.check_version(version, tags, "\n## [Unreleased]\n\n## [0.3.0] - 2026-12-01\n")


@pytest.mark.parametrize(("version", "tags"), [("0.3.0", ["v0.3.0", "nightly"]), ("0.3.0.dev12+gc825f7794", [])])
def test_a_version_of_its_tag_and_a_rehearsal_without_tag_pass(
    release: ModuleType, version: str, tags: list[str]
) -> None:
    release.check_version(version, tags, "\n## [Unreleased]\n\n## [0.3.0] - 2026-12-01\n")
