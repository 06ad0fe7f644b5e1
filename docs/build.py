"""Builds the documentation into site/: one self-contained page a Markdown file. A dead relative link fails it."""

import re
import shutil
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from urllib.parse import unquote

from markdown import Markdown
from markdown.extensions.toc import TocExtension, slugify_unicode

ROOT = Path(__file__).parent.parent
NAVIGATION = (
    ("README.md", "Discreet"),
    ("docs/guarantees.md", "Guarantees"),
    ("docs/pitfalls.md", "Pitfalls"),
    ("docs/guides/deploy.md", "Deploy"),
    ("docs/guides/ray.md", "Ray"),
    ("docs/scale.md", "Scale"),
    ("docs/errata.md", "Errata"),
    ("docs/glossary.md", "Glossary"),
    ("docs/mutants.md", "Mutants"),
    ("docs/notes/README.md", "Notes"),
    ("docs/results/accounting.md", "Results"),
    ("docs/decisions/README.md", "Decisions"),
    ("ARCHITECTURE.md", "Architecture"),
    ("CONTRIBUTING.md", "Contributing"),
    ("CHANGELOG.md", "Changes"),
)
LINK = re.compile(r'(?P<attribute>href|src)="(?P<target>[^"]*)"')
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)  # another site, or a mail address
STYLE = """
:root { color-scheme: light dark; --text: #1c1e21; --soft: #5c6370; --line: #dfe2e6; --back: #fff; --box: #f5f6f8;
  --link: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --text: #dfe2e6; --soft: #9aa2ad; --line: #363b42; --back: #16181b;
  --box: #1f2226; --link: #7db7f0; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--text); background: var(--back); font: 16px/1.6 system-ui, sans-serif; }
nav { border-bottom: 1px solid var(--line); }
nav div, main { max-width: 60rem; margin: 0 auto; padding: 0.8rem 1.25rem; }
nav a { display: inline-block; margin-right: 0.9rem; color: var(--soft); text-decoration: none; }
nav a:first-child, nav a[aria-current] { color: var(--text); font-weight: 600; }
main { padding-bottom: 4rem; }
h1, h2, h3 { line-height: 1.25; margin: 2em 0 0.6em; }
h1 { font-size: 1.9rem; margin-top: 1em; }
h2 { font-size: 1.35rem; padding-bottom: 0.25em; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.1rem; }
sub, sup { line-height: 0; }
img { max-width: 100%; height: auto; }
a { color: var(--link); }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.86em; }
code { background: var(--box); padding: 0.1em 0.3em; border-radius: 3px; overflow-wrap: break-word; }
pre { background: var(--box); padding: 0.9rem 1rem; border-radius: 6px; overflow-x: auto; line-height: 1.45; }
pre code { background: none; padding: 0; font-size: 1em; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.94em; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.9rem 0.4rem 0; border-bottom: 1px solid var(--line); }
blockquote { margin-left: 0; padding-left: 1rem; border-left: 3px solid var(--line); color: var(--soft); }
""".strip()


def build(root: Path = ROOT, site: Path = ROOT / "site") -> list[Path]:
    """Write every page of `root` into `site`, made anew, and return what was written."""
    pages = sorted(path.relative_to(root) for path in [*root.glob("*.md"), *root.glob("docs/**/*.md")])
    rendered = {page: _render(root / page) for page in pages}
    if dead := [problem for page in pages for problem in _dead_links(root, page, rendered)]:
        raise SystemExit("\n".join(dead))
    shutil.rmtree(site, ignore_errors=True)
    for page in pages:
        target = site / _address(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_page(root, page, rendered), encoding="utf-8")
        for file in _linked_files(root, page, rendered):  # sources and pictures travel along, so that links work
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / file, site / file)
    return [site / _address(page) for page in pages]


def _render(path: Path) -> str:
    toc = TocExtension(slugify=slugify_unicode)
    html = Markdown(extensions=["tables", "fenced_code", "sane_lists", toc]).convert(path.read_text(encoding="utf-8"))
    return html.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")


def _dead_links(root: Path, page: Path, rendered: dict[Path, str]) -> Iterator[str]:
    for target in _targets(rendered[page]):
        file, fragment = _resolve(root, page, target)
        if file is None or not (root / file).is_file():
            yield f"{page}: dead link {target}"
        elif fragment and file in rendered and f'id="{fragment}"' not in rendered[file]:
            yield f"{page}: dead link {target}, there is no such heading"


def _targets(html: str) -> list[str]:
    return [link["target"] for link in LINK.finditer(html) if not ELSEWHERE.match(link["target"])]


def _resolve(root: Path, page: Path, target: str) -> tuple[Path | None, str]:
    """The file that a link on `page` leads to, relative to `root`, and the place in it; None where it leads outside."""
    path, _, fragment = unquote(target).partition("#")
    file = (root / page.parent / path).resolve() if path else root / page
    if file.is_dir():
        file /= "README.md"
    inside = file.is_relative_to(root.resolve()) and not path.startswith("/")
    return (file.relative_to(root.resolve()) if inside else None), fragment


def _linked_files(root: Path, page: Path, rendered: dict[Path, str]) -> Iterator[Path]:
    for target in _targets(rendered[page]):
        file, _ = _resolve(root, page, target)
        if file is not None and file not in rendered:
            yield file


def _page(root: Path, page: Path, rendered: dict[Path, str]) -> str:
    html = LINK.sub(lambda link: _rewritten(link, root, page, rendered), rendered[page])
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", html, re.DOTALL)
    title = re.sub(r"<[^>]+>", "", heading[1]) if heading else escape(page.stem)
    links = "".join(_entry(page, Path(entry), label) for entry, label in NAVIGATION if Path(entry) in rendered)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n"
        f"<nav><div>{links}</div></nav>\n<main>\n{html}\n</main>\n</body>\n</html>\n"
    )


def _rewritten(link: re.Match[str], root: Path, page: Path, rendered: dict[Path, str]) -> str:
    """A link between Markdown files as one between pages."""
    if ELSEWHERE.match(link["target"]):
        return link[0]
    file, fragment = _resolve(root, page, link["target"])
    assert file is not None  # dead links were found before
    to = _relative(page, _address(file) if file in rendered else file)
    return f'{link["attribute"]}="{to}{f"#{fragment}" if fragment else ""}"'


def _entry(page: Path, entry: Path, label: str) -> str:
    current = ' aria-current="page"' if page == entry else ""
    return f'<a href="{_relative(page, _address(entry))}"{current}>{label}</a>'


def _address(page: Path) -> Path:
    return page.with_name("index.html") if page.name == "README.md" else page.with_suffix(".html")


def _relative(page: Path, target: Path) -> str:
    return "../" * (len(page.parts) - 1) + target.as_posix()


if __name__ == "__main__":
    sys.stdout.write(f"{len(build())} pages: open site/index.html\n")
