"""The page: whole, honest about its numbers, and readable without a network."""

import collections
import html.parser
import json
import os
import re
import shutil
import subprocess

import pytest
import toy_results

from spec_t5x.report import build, theory_figures
from spec_t5x.report.table import KINDS

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
VOID = {"meta", "link", "img", "br", "hr", "input", "wbr"}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
  """A directory of results with everything made of them."""
  directory = tmp_path_factory.mktemp("results")
  toy_results.write(directory, drafts={"small": "s"}, gammas=(3, 7))
  toy_results.write_reprojection(directory)
  tpu = directory / "tpu_compile" / "toy"
  tpu.mkdir(parents=True)
  (tpu / "provenance.json").write_text('{"device": "<b>none</b>"}')
  (tpu / "walltime.csv").write_text("draft,predicted_speed\nT5-small,2.5\n")
  build.build(directory)
  return directory


@pytest.fixture(scope="module")
def text(results):
  return (results / "index.html").read_text("utf-8")


class Reader(html.parser.HTMLParser):
  """Checks nesting and collects what tests ask about."""

  def __init__(self, text):
    super().__init__()
    self.open, self.tags, self.ids = [], [], collections.Counter()
    self.texts = collections.defaultdict(list)
    self.feed(text)
    self.close()
    assert not self.open

  def handle_starttag(self, tag, attrs):
    attributes = dict(attrs)
    assert len(attributes) == len(attrs), tag
    self.tags.append((tag, attributes, tuple(self.open)))
    if "id" in attributes:
      self.ids[attributes["id"]] += 1
    if tag not in VOID:
      self.open.append(tag)

  def handle_endtag(self, tag):
    assert self.open.pop() == tag

  def handle_data(self, data):
    for tag in self.open:
      self.texts[tag].append(data)

  def all(self, tag):
    return [attributes for name, attributes, _ in self.tags if name == tag]


@pytest.fixture(scope="module")
def page(text):
  return Reader(text)


def test_every_link_and_image_is_there(results, page):
  targets = [link["href"] for link in page.all("a")]
  targets += [image["src"] for image in page.all("img")]
  assert len(targets) > 60
  for target in targets:
    file, _, anchor = target.partition("#")
    if file:
      assert (results / file).is_file(), target
    else:
      assert page.ids[anchor] == 1, target


def test_every_link_of_the_findings_is_there(results):
  text = (results / "FINDINGS.md").read_text("utf-8")
  links = re.findall(r"\]\(([^)]+)\)", text)
  assert {"tables/lenience.md", "ende/toy/figures/speed.svg"} <= set(links)
  for link in links:
    assert (results / link).is_file(), link


def test_nothing_is_fetched_and_nothing_runs(results, text, page):
  assert not page.all("script")
  files = [
      path
      for path in results.rglob("*")
      if path.suffix in (".html", ".svg", ".md")
  ]
  assert len(files) > 20
  for path in files:
    content = path.read_text("utf-8")
    # Names of XML vocabularies are no addresses, nor is what a tool says of
    # itself in a comment.
    content = re.sub(r"<!--.*?-->", "", content, flags=re.DOTALL)
    found = re.findall(r"(?:src|href)=\"(\w+://[^\"]+)|url\((\w+://)", content)
    assert not found, path


def test_ids_are_unique_and_the_document_is_described(page):
  assert set(page.ids.values()) == {1}
  [document] = page.all("html")
  assert document["lang"] == "en"
  assert page.texts["title"]
  assert {"charset"} in [meta.keys() for meta in page.all("meta")]
  headings = [
      int(tag[1]) for tag, _, _ in page.tags if re.fullmatch("h[1-6]", tag)
  ]
  assert headings[0] == 1
  assert headings.count(1) == 1
  # No level is skipped.
  for before, after in zip(headings, headings[1:], strict=False):
    assert after <= before + 1


def test_images_have_words_and_tables_captions(page):
  for image in page.all("img"):
    assert len(image["alt"]) > 40
  kinds = [tag for tag, _, _ in page.tags]
  assert kinds.count("caption") == kinds.count("table") > 10
  for tag, attributes, parents in page.tags:
    if tag == "th":
      scope = "col" if "thead" in parents else "row"
      assert attributes["scope"] == scope
    if attributes.get("role") == "region":
      assert page.ids[attributes["aria-labelledby"]] == 1


def test_numbers_say_what_they_are(text, page):
  badges = [
      attributes["class"].split()[1]
      for tag, attributes, parents in page.tags
      if tag == "span" and "thead" in parents
  ]
  assert {"measured", "predicted", "computed", "printed"} <= set(badges)
  assert set(badges) <= set(KINDS)
  # A CSV of another program tells it by the names of its columns.
  assert re.search(r"predicted_speed <span class=\"kind predicted\">", text)


def test_the_overview_says_what_the_details_say(text):
  [overview] = re.findall(r'<table class="overview">(.*?)</table>', text, re.S)
  rows = re.findall(r'href="#(claim-\d+)">([^<]+)</a></th>(.*)', overview)
  assert len(rows) == text.count('<h3 id="claim-') > 5
  for claim, title, cells in rows:
    verdicts = set(re.findall(r'<span class="\w+">([^<]+)', cells))
    heading = re.search(rf'<h3 id="{claim}">.*?>([^<]+)</span> (.*)</h3>', text)
    assert heading[2] == title
    expected = verdicts.pop() if len(verdicts) == 1 else "holds in part"
    assert heading[1].lower() == expected


def test_foreign_text_is_escaped(text):
  assert "&lt;b&gt;Open&lt;/b&gt; the file" in text
  assert "<b>Open</b>" not in text
  assert "&lt;b&gt;none&lt;/b&gt;" in text


def test_runs_are_shown_with_their_origin(text):
  for part in (
      "2 cores, toy",
      "sweep.py --gin_file=configs/experiments/ende.gin",
      "ende/toy/provenance.json",
      "ende/toy/cells/walltime-small-t0-g7.jsonl",
      "tpu_compile/toy/walltime.csv",
  ):
    assert part in text


def test_without_runs_the_page_says_so(tmp_path, monkeypatch):
  monkeypatch.setattr(theory_figures, "draw", lambda directory: [])
  build.build(tmp_path)
  text = (tmp_path / "index.html").read_text("utf-8")
  assert "No run has been measured yet" in text
  assert "Run " not in re.sub(r"<style>.*</style>", "", text, flags=re.DOTALL)
  Reader(text)


def test_the_same_cells_give_the_same_bytes(results, tmp_path, monkeypatch):
  made = [p for p in results.rglob("*") if p.is_file() and p.suffix != ".jsonl"]
  copy = tmp_path / "copy"
  for run in results.glob("*/toy"):
    target = copy / run.relative_to(results)
    target.mkdir(parents=True)
    for path in run.iterdir():
      if path.name == "cells":
        shutil.copytree(path, target / "cells")
      elif path.name != "figures":
        shutil.copy(path, target)
  # Figures of theory are compared with the committed ones elsewhere.
  shutil.copytree(results / "theory", copy / "theory")
  monkeypatch.setattr(theory_figures, "draw", lambda directory: [])
  build.build(copy)
  for path in made:
    again = copy / path.relative_to(results)
    assert again.read_bytes() == path.read_bytes(), path
  left = {p.relative_to(copy) for p in copy.rglob("*") if p.is_file()}
  assert left == {
      p.relative_to(results) for p in results.rglob("*") if p.is_file()
  }


PROBE = """
<script>
addEventListener("load", () => {
  const luminance = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((v) => {
      const s = v / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = luminance(getComputedStyle(document.body).backgroundColor);
  const contrast = (element) => {
    const ink = luminance(getComputedStyle(element).color);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  };
  const texts = document.querySelectorAll(
      "h1, h2, h3, p, a, li, td, th, caption, figcaption, .kind, .verdict," +
      " ins, del, b, i");
  const images = [...document.images];
  document.body.innerHTML = JSON.stringify({
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    paper: paper,
    contrast: Math.min(...[...texts].map(contrast)),
    images: images.length,
    broken: images.filter((i) => !i.complete || !i.naturalWidth).length,
    width: document.documentElement.scrollWidth,
    window: innerWidth,
    mode: document.compatMode,
  });
});
</script>
"""


@pytest.fixture(scope="module")
def browser():
  """A browser without a window, or a skipped test."""
  found = list(filter(None, map(shutil.which, BROWSERS)))
  if not found:
    pytest.skip(f"none of {BROWSERS} is installed (apt-get install chromium)")
  return found[0]


def look(browser, results, *options):
  """What a browser makes of the page, by a probe put into a copy of it."""
  path = results / "probe.html"
  text = (results / "index.html").read_text("utf-8")
  # Everything is unfolded, to be looked at.
  text = text.replace("<details>", "<details open>")
  path.write_text(text.replace("</head>", PROBE + "</head>"))
  command = [
      browser,
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      f"--user-data-dir={results / 'profile'}",
      "--virtual-time-budget=10000",
      *options,
      "--dump-dom",
      path.as_uri(),
  ]
  try:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "HOME": str(results / "profile")},
    )
  finally:
    path.unlink()
  body = re.search(r"<body>(\{.*\})</body>", done.stdout, re.DOTALL)
  return json.loads(body[1])


@pytest.fixture(scope="module")
def shown(results, tmp_path_factory):
  """A copy that a browser may write beside."""
  copy = tmp_path_factory.mktemp("browser") / "results"
  shutil.copytree(results, copy)
  return copy


@pytest.mark.parametrize(
    "options",
    [
        ("--window-size=1300,900",),
        ("--window-size=500,900",),
        ("--window-size=1300,900", "--blink-settings=preferredColorScheme=0"),
    ],
    ids=["wide", "narrow", "dark"],
)
def test_a_browser_shows_it(browser, shown, options):
  seen = look(browser, shown, *options)
  assert seen["images"] >= 10
  assert seen["broken"] == 0
  assert seen["mode"] == "CSS1Compat"
  # Wide tables scroll by themselves; the page does not.
  assert seen["width"] <= seen["window"]
  # Web Content Accessibility Guidelines 2.2, level AA.
  assert seen["contrast"] >= 4.5
  assert seen["dark"] == (len(options) == 2) == (seen["paper"] < 0.1)


def test_a_browser_notices_what_is_missing(browser, shown):
  """A control: a lost figure and a page too wide are seen."""
  path = shown / "index.html"
  whole = path.read_text("utf-8")
  figure = shown / "ende/toy/figures/speed.svg"
  kept = figure.read_bytes()
  figure.unlink()
  path.write_text(
      whole.replace("<main", "<p style='width:200rem;color:#888'>a</p><main")
  )
  try:
    seen = look(browser, shown, "--window-size=500,900")
  finally:
    path.write_text(whole, "utf-8")
    figure.write_bytes(kept)
  assert seen["broken"] == 1
  assert seen["width"] > seen["window"]
  assert seen["contrast"] < 4.5
