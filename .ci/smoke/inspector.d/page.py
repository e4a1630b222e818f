# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: the Holdfast authors
"""What the inspector's page must show and do, looked at in a browser."""

import os

READY = "Number(document.documentElement?.dataset.rounds) >= %d && document.querySelectorAll('#entries button').length > 0"
FOCUSED = "document.activeElement === document.querySelector('%s')"

# Texts whose colour does not stand out from the ground behind them by 4.5 to 1 (WCAG 2.2, 1.4.3).
FAINT = """(() => {
  const numbers = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = node => {
    for (let at = node; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const node of document.body.querySelectorAll("*")) {
    const hasText = [...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim());
    if (!hasText || node.closest("script, noscript, option") || !node.getClientRects().length) continue;
    const both = [light(numbers(getComputedStyle(node).color)), light(ground(node))].sort((a, b) => a - b);
    const contrast = (both[1] + 0.05) / (both[0] + 0.05);
    if (contrast < 4.5) faint.push(node.textContent.trim().slice(0, 40) + " " + contrast.toFixed(2));
  }
  return faint;
})()"""

# Parts that stick out of a narrow window, those within a part that scrolls by itself aside.
WIDE = """[...document.querySelectorAll("body *")]
  .filter(node => !node.closest(".scroll, .hidden, .skip, svg, thead") && node.getBoundingClientRect().right > innerWidth + 1)
  .map(node => node.tagName + "." + node.className).slice(0, 5)"""

# Things to press or fill in that tell a screen reader nothing.
NAMELESS = """[...document.querySelectorAll("button, input, select, svg[role=img], [role=region], dialog, table")]
  .filter(node => node.tagName !== "TABLE" && !node.getAttribute("aria-label") && !node.getAttribute("aria-labelledby")
    && !(node.labels && node.labels.length && node.labels[0].textContent.trim()) && !node.textContent.trim())
  .map(node => node.outerHTML.slice(0, 80))"""


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def nothing(found, what):
    check(not found, "%s: %s" % (what, found))


def look(browser, url, pictures):
    """Looks at the page by day, by night and narrow; leaves pictures behind."""
    for name, width, scheme in (("light", 1280, "light"), ("dark", 1280, "dark"), ("narrow", 400, "light")):
        browser.size(width, 900)
        browser.scheme(scheme)
        browser.open(url)
        browser.wait_for(READY % 2, "the page shows entries (%s)" % name)
        for chart in ("rate", "requests", "bytes"):
            drawn = browser.ask("document.querySelector('#chart-%s svg path:not(.grid)')?.getAttribute('d')?.length" % chart)
            check(drawn, "the chart of %s is drawn (%s)" % (chart, name))
        for table in ("calls", "origins", "reasons"):
            check(browser.ask("document.querySelectorAll('#%s td:not(.empty)').length" % table) > 1, "%s has rows" % table)
        nothing(browser.ask(FAINT), "faint texts (%s)" % name)
        nothing(browser.ask(NAMELESS), "things without a name (%s)" % name)
        nothing(browser.ask(WIDE), "parts that stick out (%s)" % name)
        browser.size(width, browser.ask("document.documentElement.scrollHeight"))
        browser.picture(os.path.join(pictures, name + ".png"))
        browser.size(width, 900)
        browser.ask("document.querySelector('#entries .open').click()")
        browser.wait_for("document.querySelector('#detail').open", "the details open (%s)" % name)
        nothing(browser.ask(FAINT), "faint texts in the details (%s)" % name)
        browser.picture(os.path.join(pictures, name + "-details.png"), whole=False)


def keys(browser, url):
    """Uses the page by keyboard alone."""
    browser.size(1280, 900)
    browser.open(url)
    browser.wait_for(READY % 1, "the page shows entries")
    browser.press("Tab")
    check(browser.ask("document.activeElement.className") == "skip", "the first stop leads to the entries")
    check(browser.ask("document.activeElement.getBoundingClientRect().width") > 20, "and can be seen there")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    browser.press("Tab")
    check(browser.ask(FOCUSED % "#pause"), "then comes the button that pauses")
    check(browser.ask(outline) == "solid", "focus can be seen")
    browser.press(" ")
    check(browser.ask("document.querySelector('#pause').getAttribute('aria-pressed')") == "true", "space pauses")
    browser.press(" ")
    browser.press("/")
    check(browser.ask(FOCUSED % "#search"), "/ leads to the search")
    check(browser.ask("document.activeElement.value") == "", "and is not typed into it")
    browser.type("no such entry")
    browser.wait_for("document.querySelector('#entries .empty') !== null", "a search that finds nothing says so")
    browser.ask("document.querySelector('#search').select()")
    browser.type("origin-page/1")
    browser.wait_for(
        "document.querySelectorAll('#entries .open').length > 0 && "
        "[...document.querySelectorAll('#entries .open')].every(open => open.textContent.includes('origin-page/1'))",
        "a search that finds something shows that alone",
    )
    browser.press("Tab")
    check(browser.ask(FOCUSED % "#refresh"), "behind the search comes its button")
    for _ in range(2):
        browser.press("Tab")
    check(browser.ask("document.activeElement.matches('#entries .open')"), "then the first row")
    browser.press("ArrowDown")
    check(browser.ask("document.activeElement.closest('tr').previousElementSibling !== null"), "arrows move along the rows")
    browser.press("ArrowUp")
    browser.press("Enter")
    browser.wait_for("document.querySelector('#detail').open", "Enter opens the details")
    check(browser.ask("document.querySelector('#detail').contains(document.activeElement)"), "focus is in the details")
    browser.press("Escape")
    browser.wait_for("!document.querySelector('#detail').open", "Escape closes them")
    check(browser.ask("document.activeElement.matches('#entries .open')"), "focus is where it was")
    browser.ask("document.querySelector('#chart-requests svg').focus()")
    browser.press("ArrowLeft")
    check("ago" in browser.ask("document.querySelector('#chart-requests output').textContent")
          or "now" in browser.ask("document.querySelector('#chart-requests output').textContent"), "arrows read the chart")
    browser.ask("document.querySelector('input[value=minutes]').click()")
    check("/min" in browser.ask("document.querySelector('#chart-requests figcaption').textContent"), "the hour is shown")


def hostility(browser, url):
    """A stored response with hostile URL and fields stays text."""
    browser.open(url)
    browser.wait_for(READY % 1, "the page shows entries")
    browser.ask("document.querySelector('#search').value = 'onerror'; document.querySelector('#search').dispatchEvent(new Event('input'))")
    browser.wait_for("document.querySelectorAll('#entries .open').length === 1", "the hostile URL is listed")
    browser.ask("document.querySelector('#entries .open').click()")
    browser.wait_for("document.querySelector('#detail').open", "its details open")
    text = browser.ask("document.querySelector('#detail').innerText")
    check("<img src=x onerror=" in text, "the hostile field is shown as it is: " + text)
    check("geheim" not in browser.ask("document.body.innerText"), "no credential is shown")
    check(browser.ask("document.querySelectorAll('img, iframe, object, #detail script').length") == 0, "no markup came of it")
    check(browser.ask("document.title") == "Holdfast inspector", "no script of it ran")
    refused = browser.ask("try { document.body.innerHTML = '<b>x</b>'; false } catch (error) { error instanceof TypeError }")
    check(refused, "the policy lets no text become markup")
    expected = [text for text in browser.complaints if "TrustedHTML" in text]
    browser.complaints = [text for text in browser.complaints if text not in expected]


def purges(browser, url):
    """Purges one entry softly, one for good, then all."""
    browser.open(url)
    browser.wait_for(READY % 1, "the page shows entries")
    browser.ask("document.querySelector('#pause').click()")
    browser.ask("document.querySelector('#entries .open').click()")
    browser.wait_for("document.querySelector('#detail').open", "the details open")
    browser.ask("document.querySelector('#detail-soft').click()")
    check(browser.ask(FOCUSED % "#confirm-no"), "the question begins at the answer that does nothing")
    browser.press("Escape")
    check(browser.ask("document.querySelector('#message').textContent") == "", "Escape purges nothing")
    browser.ask("document.querySelector('#detail-soft').click(); document.querySelector('#confirm-yes').click()")
    browser.wait_for("document.querySelector('#message').textContent.startsWith('1 entry was marked')", "an entry is marked")
    browser.wait_for("document.querySelector('#entries').innerText.includes('ask the origin first')", "and shown so")
    browser.ask("document.querySelector('#entries .danger').click(); document.querySelector('#confirm-yes').click()")
    browser.wait_for("document.querySelector('#message').textContent === '1 entry was removed.'", "an entry is removed")
    browser.ask(
        "const all = document.querySelector('#purge-selection'); all.value = 'all'; all.dispatchEvent(new Event('change'));"
        "document.querySelector('#purge button').click(); document.querySelector('#confirm-yes').click()"
    )
    browser.wait_for("document.querySelector('#entries .empty') !== null", "all entries are removed")
