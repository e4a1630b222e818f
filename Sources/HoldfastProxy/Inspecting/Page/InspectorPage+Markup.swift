// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    extension InspectorPage {
        /// What the page consists of; the script fills it.
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
            <option value="prefix">a URL and all beneath it</option>
            <option value="tag">a tag</option>
            <option value="all">everything</option>
            </select></label>
            <label class="grow"><span id="purge-label">URL</span> <input id="purge-value" type="text" maxlength="4096" autocomplete="off" spellcheck="false"></label>
            <label><input id="purge-softly" type="checkbox"> softly: keep it, but ask the origin first</label>
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
            <button id="detail-soft" type="button">Purge softly</button>
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
    }
#endif
