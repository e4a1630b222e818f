// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// The inspector's page: one document with its style and its script, which loads nothing else.
    struct InspectorPage: Sendable {
        /// The document as it is sent.
        let bytes: ByteChunk
        /// What the document may do (CSP Level 3): run only this script, use this style, and send requests to the
        /// inspector.
        let policy: String

        /// Creates the page with the word that identifies its orders.
        ///
        /// - Parameter word: hexadecimal digits.
        init(word: String) {
            let script = InspectorPage.script
            bytes = ByteChunk(copying: InspectorPage.document(word: word, script: script).utf8)
            policy = [
                "default-src 'none'",
                "script-src '\(InspectorPage.hash(of: script))'",
                "style-src '\(InspectorPage.hash(of: InspectorPage.style))'",
                "connect-src 'self'",
                "img-src data:",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
                "require-trusted-types-for 'script'",
                "trusted-types 'none'",
            ]
            .joined(separator: "; ")
        }

        /// The whole script; its parts share one scope, which is not visible outside.
        static var script: String {
            let parts = [basics, charts, summary, entries, calls, start].joined(separator: "\n\n")
            return "\"use strict\";\n(() => {\n\(parts)\n})();\n"
        }

        private static func document(word: String, script: String) -> String {
            """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <meta name="holdfast-word" content="\(word)">
            <title>Holdfast inspector</title>
            <link rel="icon" href="data:,">
            <style>\(style)</style>
            </head>
            <body>
            \(body)
            <script>\(script)</script>
            </body>
            </html>

            """
        }

        /// The source expression that allows a text as script or style, by its digest.
        private static func hash(of text: String) -> String {
            "sha256-\(Data(SHA256Digest(hashing: Array(text.utf8)).bytes).base64EncodedString())"
        }

        /// The content of the page; the script fills it.
        static let body = #"""
            <a class="skip" href="#entries-title">Skip to the entries</a>
            <header class="top">
            <h1>Holdfast</h1>
            <p class="facts"><span id="mode"></span><span id="uptime"></span></p>
            <p id="live" class="live">connecting</p>
            <button id="pause" type="button" aria-pressed="false">Pause</button>
            </header>
            <p id="message" class="message" role="status"></p>
            <main>
            <section aria-labelledby="totals-title">
            <h2 id="totals-title">Since the start</h2>
            <dl id="cards" class="cards"></dl>
            </section>
            <section aria-labelledby="traffic-title">
            <div class="bar">
            <h2 id="traffic-title">Traffic</h2>
            <fieldset class="choice"><legend class="hidden">Time shown</legend>
            <label><input type="radio" name="span" value="seconds" checked> 5 minutes by second</label>
            <label><input type="radio" name="span" value="minutes"> 1 hour by minute</label>
            </fieldset>
            </div>
            <div class="charts">
            <figure class="chart" id="chart-rate"></figure>
            <figure class="chart" id="chart-requests"></figure>
            <figure class="chart" id="chart-bytes"></figure>
            </div>
            <ul id="legend" class="legend"></ul>
            </section>
            <section aria-labelledby="entries-title">
            <div class="bar">
            <h2 id="entries-title" tabindex="-1">Entries</h2>
            <label class="search"><span class="hidden">Search entries by URL, tag or status</span>
            <input id="search" type="search" maxlength="256" autocomplete="off" spellcheck="false" placeholder="URL, tag or status  ( / )"></label>
            <button id="refresh" type="button">Refresh</button>
            </div>
            <div class="scroll tall" role="region" aria-labelledby="entries-title" tabindex="0">
            <table role="table" class="flow">
            <thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Status</th><th role="columnheader" scope="col">URL</th><th role="columnheader" scope="col">Freshness</th><th role="columnheader" scope="col" class="wide number">Size</th><th role="columnheader" scope="col" class="wide number">Hits</th><th role="columnheader" scope="col" class="wide">Last decision</th><th role="columnheader" scope="col"><span class="hidden">Purge</span></th></tr></thead>
            <tbody role="rowgroup" id="entries"></tbody>
            </table>
            </div>
            <nav class="bar pages" aria-label="Pages of entries">
            <button id="previous" type="button" aria-disabled="true">First page</button>
            <button id="next" type="button" aria-disabled="true">Next page</button>
            <p id="entries-count" class="quiet"></p>
            </nav>
            </section>
            <section aria-labelledby="purge-title">
            <h2 id="purge-title">Purge</h2>
            <form id="purge" class="bar">
            <label>What <select id="purge-selection">
            <option value="prefix">a URL and all below it</option>
            <option value="tag">a tag</option>
            <option value="all">everything</option>
            </select></label>
            <label class="grow"><span id="purge-label">URL</span> <input id="purge-value" type="text" maxlength="4096" autocomplete="off" spellcheck="false"></label>
            <label><input id="purge-soft" type="checkbox"> mark stale: keep it, but ask the origin first</label>
            <button type="submit" class="danger">Purge</button>
            </form>
            </section>
            <section aria-labelledby="calls-title">
            <h2 id="calls-title">Recent calls</h2>
            <div class="scroll tall" role="region" aria-labelledby="calls-title" tabindex="0">
            <table role="table" class="flow">
            <thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col" class="wide">Time</th><th role="columnheader" scope="col">Request</th><th role="columnheader" scope="col">Decision</th><th role="columnheader" scope="col">Status</th><th role="columnheader" scope="col" class="wide">Attempts</th><th role="columnheader" scope="col" class="number">Took</th></tr></thead>
            <tbody role="rowgroup" id="calls"></tbody>
            </table>
            </div>
            </section>
            <section aria-labelledby="origins-title">
            <h2 id="origins-title">Origins</h2>
            <div class="scroll" role="region" aria-labelledby="origins-title" tabindex="0">
            <table role="table" class="flow">
            <thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Origin</th><th role="columnheader" scope="col" class="number">Requests</th><th role="columnheader" scope="col" class="number">Hit rate</th><th role="columnheader" scope="col">Circuit</th><th role="columnheader" scope="col" class="number">Retries left</th><th role="columnheader" scope="col" class="wide number">Failed attempts</th><th role="columnheader" scope="col" class="wide number">Retries</th><th role="columnheader" scope="col" class="wide">Waiting</th></tr></thead>
            <tbody role="rowgroup" id="origins"></tbody>
            </table>
            </div>
            </section>
            <div class="pair">
            <section aria-labelledby="reasons-title">
            <h2 id="reasons-title">Why the origin was asked, or something stale was used</h2>
            <table role="table"><thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Reason</th><th role="columnheader" scope="col" class="number">Times</th></tr></thead><tbody role="rowgroup" id="reasons"></tbody></table>
            </section>
            <section aria-labelledby="not-stored-title">
            <h2 id="not-stored-title">Why responses were not stored</h2>
            <table role="table"><thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Reason</th><th role="columnheader" scope="col" class="number">Times</th></tr></thead><tbody role="rowgroup" id="not-stored"></tbody></table>
            </section>
            </div>
            </main>
            <dialog id="detail" aria-labelledby="detail-title">
            <div class="bar">
            <h2 id="detail-title">Entry</h2>
            <button id="detail-close" type="button">Close</button>
            </div>
            <p id="detail-url" class="url"></p>
            <dl id="detail-facts" class="rows"></dl>
            <h3>Vary key</h3>
            <dl id="detail-vary" class="rows fields"></dl>
            <h3>Stored head</h3>
            <dl id="detail-fields" class="rows fields"></dl>
            <div class="bar end">
            <button id="detail-soft" type="button">Mark stale</button>
            <button id="detail-hard" type="button" class="danger">Purge</button>
            </div>
            </dialog>
            <dialog id="confirm" aria-labelledby="confirm-title">
            <h2 id="confirm-title">Purge</h2>
            <p id="confirm-text"></p>
            <div class="bar end">
            <button id="confirm-no" type="button">Cancel</button>
            <button id="confirm-yes" type="button" class="danger">Purge</button>
            </div>
            </dialog>
            <noscript><p class="message">The inspector needs JavaScript.</p></noscript>
            """#

        /// The style of the page; every text color has a contrast of at least 4.5 to 1 to its background.
        static let style = #"""
            :root {
              color-scheme: light dark;
              --ground: #f6f8fa; --panel: #ffffff; --text: #1b1f24; --quiet: #57606a; --line: #d0d7de; --edge: #6e7781;
              --accent: #0550ae; --danger: #a40e26; --on-danger: #ffffff;
              --hits: #1a7f37; --stale: #9a6700; --revalidated: #0969da; --collapsed: #8250df; --misses: #cf222e; --bypasses: #646c75;
            }
            @media (prefers-color-scheme: dark) {
              :root {
                --ground: #0d1117; --panel: #161b22; --text: #e6edf3; --quiet: #9da7b3; --line: #30363d; --edge: #7d8590;
                --accent: #79c0ff; --danger: #ff9492; --on-danger: #1b0a0a;
                --hits: #3fb950; --stale: #d29922; --revalidated: #58a6ff; --collapsed: #bc8cff; --misses: #ff7b72; --bypasses: #8b949e;
              }
            }
            * { box-sizing: border-box; }
            body {
              margin: 0 auto; padding: 0 1rem 3rem; max-width: 84rem; background: var(--ground); color: var(--text);
              font: 15px/1.45 system-ui, sans-serif;
            }
            h1, h2, h3, p, dl, dd, figure, ul, fieldset { margin: 0; padding: 0; border: 0; }
            h1 { font-size: 1.3rem; }
            h2 { font-size: 1rem; margin-bottom: .6rem; }
            h3 { font-size: .9rem; margin: 1rem 0 .4rem; }
            section { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1rem; margin-top: 1rem; min-width: 0; }
            .hidden, .skip:not(:focus) {
              position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
            }
            .skip { display: inline-block; padding: .5rem; color: var(--accent); }
            .top, .bar { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem .9rem; }
            .top { padding-top: 1rem; }
            .bar > h2 { margin: 0; margin-inline-end: auto; }
            .end { justify-content: flex-end; margin-top: 1rem; }
            .pages { margin-top: .7rem; }
            .facts { display: flex; gap: .9rem; color: var(--quiet); margin-inline-end: auto; }
            .quiet { color: var(--quiet); }
            .live { color: var(--quiet); }
            .live::before { content: ""; display: inline-block; width: .6em; height: .6em; border-radius: 50%; margin-inline-end: .4em; background: var(--edge); }
            .live.on::before { background: var(--hits); }
            .live.off::before { background: var(--misses); }
            .message:not(:empty) { margin-top: .8rem; padding: .6rem .9rem; background: var(--panel); border: 1px solid var(--edge); border-radius: 8px; }
            button, input, select { font: inherit; color: inherit; }
            button, input[type=text], input[type=search], select {
              background: var(--panel); border: 1px solid var(--edge); border-radius: 6px; padding: .3rem .7rem; min-height: 2.1rem;
            }
            ::placeholder { color: var(--quiet); opacity: 1; }
            button { cursor: pointer; }
            button:hover { border-color: var(--text); }
            button[aria-disabled=true] { color: var(--quiet); border-color: var(--line); cursor: default; }
            button[aria-pressed=true] { background: var(--text); color: var(--panel); }
            .danger { color: var(--danger); border-color: var(--danger); }
            .danger:hover { background: var(--danger); color: var(--on-danger); border-color: var(--danger); }
            :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
            h2:focus { outline: none; }
            .choice { display: flex; flex-wrap: wrap; gap: .3rem .9rem; }
            .search, .search input { flex: 1 1 14rem; max-width: 26rem; }
            .search { display: flex; }
            .grow { display: flex; flex: 1 1 16rem; align-items: center; gap: .5rem; }
            .grow input { flex: 1; min-width: 0; }
            .cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: .8rem; }
            .cards > div { display: flex; flex-direction: column-reverse; justify-content: flex-end; }
            .cards dt { color: var(--quiet); font-size: .85rem; }
            .cards dd { font-size: 1.35rem; font-weight: 600; font-variant-numeric: tabular-nums; }
            .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem; margin-top: .7rem; }
            .chart { min-width: 0; }
            .chart figcaption { display: flex; justify-content: space-between; gap: .5rem; font-size: .85rem; }
            .chart svg { display: block; width: 100%; height: 7.5rem; background: var(--ground); border-bottom: 1px solid var(--edge); }
            .chart output { display: block; min-height: 1.4em; font-size: .85rem; color: var(--quiet); font-variant-numeric: tabular-nums; }
            .grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
            .cursor { stroke: var(--text); stroke-width: 1; vector-effect: non-scaling-stroke; }
            .rate { fill: none; stroke: var(--hits); stroke-width: 2; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
            .axis { display: flex; justify-content: space-between; font-size: .8rem; color: var(--quiet); }
            .f-hits { fill: var(--hits); } .f-stale { fill: var(--stale); } .f-revalidated { fill: var(--revalidated); }
            .f-collapsed { fill: var(--collapsed); } .f-misses { fill: var(--misses); } .f-bypasses { fill: var(--bypasses); }
            .f-bytesSaved { fill: var(--hits); } .f-bytesFetched { fill: var(--misses); }
            .legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; font-size: .85rem; margin-top: .5rem; }
            .legend svg { width: .8em; height: .8em; margin-inline-end: .4em; }
            .scroll { overflow-x: auto; margin-top: .6rem; border-radius: 4px; }
            .tall { max-height: 27rem; overflow-y: auto; }
            .tall th { position: sticky; top: 0; background: var(--panel); }
            table { border-collapse: collapse; width: 100%; font-size: .9rem; }
            th, td { text-align: start; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
            th { color: var(--quiet); font-weight: 600; white-space: nowrap; }
            tbody tr:last-child td { border-bottom: 0; }
            .number { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap; }
            .still { font-variant-numeric: tabular-nums; white-space: nowrap; }
            .url { overflow-wrap: anywhere; unicode-bidi: isolate; font-family: ui-monospace, monospace; font-size: .85rem; }
            .open { background: none; border: 0; padding: .1rem 0; min-height: 0; text-align: start; color: var(--accent); text-decoration: underline; }
            .small { min-height: 0; padding: .1rem .5rem; font-size: .85rem; }
            .mark { font-weight: 600; }
            .t-hits { color: var(--hits); } .t-stale { color: var(--stale); } .t-revalidated { color: var(--revalidated); }
            .t-collapsed { color: var(--collapsed); } .t-misses { color: var(--misses); } .t-bypasses { color: var(--bypasses); }
            .why { color: var(--quiet); }
            .empty { color: var(--quiet); padding: .8rem 0; }
            .pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); gap: 0 1rem; }
            dialog {
              width: min(52rem, calc(100% - 2rem)); max-height: calc(100% - 2rem); padding: 1rem 1.2rem; border: 1px solid var(--edge);
              border-radius: 8px; background: var(--panel); color: var(--text);
            }
            dialog::backdrop { background: rgb(0 0 0 / .55); }
            .rows { display: grid; grid-template-columns: minmax(7rem, 14rem) 1fr; gap: .15rem .9rem; margin-top: .6rem; font-size: .9rem; }
            .rows dt { color: var(--quiet); overflow-wrap: anywhere; }
            .rows dd { overflow-wrap: anywhere; unicode-bidi: isolate; white-space: pre-wrap; }
            .fields dd { font-family: ui-monospace, monospace; font-size: .85rem; }
            @media (max-width: 44rem) {
              body { padding: 0 .5rem 2rem; }
              section { padding: .7rem; }
              .wide, .flow .wide { display: none; }
              .flow, .flow tbody { display: block; }
              .flow thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
              .flow tr { display: flex; flex-wrap: wrap; align-items: center; gap: .1rem .9rem; padding: .5rem 0; border-bottom: 1px solid var(--line); }
              .flow td { border: 0; padding: 0; text-align: start; }
              .flow td.url, .flow td:has(.url) { order: -1; flex: 1 0 100%; }
              .flow td:has(button.danger) { margin-inline-start: auto; }
              .flow .number::before { content: attr(data-label) ": "; color: var(--quiet); font-weight: 400; }
              .rows { grid-template-columns: 1fr; }
              .rows dd { margin-bottom: .3rem; }
              .cards { grid-template-columns: repeat(auto-fill, minmax(7.5rem, 1fr)); }
              th, td { padding-inline-end: .5rem; }
            }
            @media (prefers-reduced-motion: no-preference) {
              button { transition: border-color .15s; }
            }
            @media (forced-colors: active) {
              .chart svg, .legend svg { forced-color-adjust: none; }
            }
            """#
    }
#endif
