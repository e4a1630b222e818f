// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    extension InspectorPage {
        /// Script: the list of entries, its search and its pages, and the details of one.
        static let entries = #"""
            const listing = {cursors: [null], next: null, at: 0, shown: [], ticket: 0};
            let opened = null;

            // How long an entry stays fresh from now on, by the time since its list came in.
            const freshnessNow = (entry, at) => entry.freshnessLeft - (performance.now() - at) / 1000;

            function freshnessText(entry, at) {
              if (entry.needsConfirmation) return ["ask the origin first", "t-revalidated"];
              const left = freshnessNow(entry, at);
              return left > 0 ? ["fresh, " + span(Math.ceil(left)) + " left", "t-hits"] : ["stale for " + span(-left), "t-stale"];
            }

            function makeEntryRow(entry) {
              const open = element("button", {type: "button", classes: "open url", text: entry.url});
              open.addEventListener("click", () => openDetail(row.entry));
              const purge = element("button", {type: "button", classes: "small danger", text: "Purge", label: "Purge " + entry.url});
              purge.addEventListener("click", () => confirmPurge({selection: "entry", value: row.entry.id, softly: false}, "this entry: " + row.entry.url));
              const row = element("tr", {},
                element("td", {classes: "number"}), element("td", {}, open), element("td", {classes: "still mark"}),
                element("td", {classes: "wide number"}), element("td", {classes: "wide number"}), element("td", {classes: "wide"}),
                element("td", {}, purge));
              return row;
            }

            function updateEntryRow(row, entry) {
              row.entry = entry;
              row.at = listing.at;
              setText(row.children[0], String(entry.status));
              const text = (entry.method === "GET" ? "" : entry.method + " ") + entry.url + (entry.isPersonal ? "  (one user's own)" : "")
                + (entry.isPinned ? "  (pinned)" : "");
              setText(row.children[1].firstElementChild, text);
              setText(row.children[3], bytes(entry.bodyLength));
              setText(row.children[4], count(entry.hits));
              const known = JSON.stringify(entry.decision ?? null);
              if (row.known !== known) {
                row.known = known;
                row.children[5].replaceChildren(...decisionText(entry.decision));
              }
              tickRow(row);
            }

            function tickRow(row) {
              if (!row.entry) return;
              const [text, kind] = freshnessText(row.entry, row.at);
              setText(row.children[2], text);
              row.children[2].className = "still mark " + kind;
            }

            function tick() {
              for (const row of byId("entries").children) tickRow(row);
              if (opened) setText(opened.freshness, freshnessText(opened.entry, opened.at)[0]);
            }

            async function loadEntries() {
              const ticket = listing.ticket += 1;
              const search = byId("search").value.trim();
              const cursor = listing.cursors[listing.cursors.length - 1];
              const facts = await ask("/api/entries?" + new URLSearchParams({search, limit: "50", cursor: cursor ?? ""}));
              // Answers may overtake each other; only that to the last question counts.
              if (ticket !== listing.ticket) return;
              listing.at = performance.now();
              listing.next = facts.next ?? null;
              if (facts.entries.length === 0) noteEmpty(byId("entries"), 7, search ? "Nothing here matches." : "Nothing is stored.");
              else bringInLine(byId("entries"), facts.entries, entry => entry.id, makeEntryRow, updateEntryRow);
              byId("previous").setAttribute("aria-disabled", String(listing.cursors.length === 1));
              byId("next").setAttribute("aria-disabled", String(listing.next === null));
              setText(byId("entries-count"), search
                ? count(facts.entries.length) + " match of " + count(facts.looked) + " looked at, " + count(facts.total) + " stored"
                : count(facts.entries.length) + " of " + count(facts.total) + " stored, page " + listing.cursors.length);
            }

            function firstPage() {
              listing.cursors = [null];
              return attempt(loadEntries);
            }

            async function openDetail(entry) {
              let facts;
              try {
                facts = await ask("/api/entry?" + new URLSearchParams({id: entry.id}));
              } catch (error) {
                say(error.message);
                return firstPage();
              }
              const at = performance.now();
              const freshness = element("dd", {text: freshnessText(facts.entry, at)[0]});
              opened = {entry: facts.entry, at, freshness};
              setText(byId("detail-url"), facts.entry.method + " " + facts.entry.url);
              const rows = [
                ["Status", String(facts.entry.status)],
                ["Stored", dateTime(facts.entry.storedAt)],
                ["Age", span(facts.entry.age)],
                ["Freshness", freshness],
                ["Body", bytes(facts.entry.bodyLength) + (facts.storedRanges ? " (bytes " + facts.storedRanges + ")" : "")],
                ["Head", bytes(facts.headLength)],
                ["Hits", count(facts.entry.hits)],
                ["Tags", facts.tags.join(", ") || "none"],
                ["Belongs to", facts.entry.isPersonal ? "one user" : "everyone"],
                ["Last decision", element("dd", {}, ...decisionText(facts.entry.decision),
                  facts.entry.decision ? " at " + clockTime(facts.entry.decision.at) : "")],
              ];
              byId("detail-facts").replaceChildren(...rows.flatMap(([name, value]) =>
                [element("dt", {text: name}), typeof value === "string" ? element("dd", {text: value}) : value]));
              showLines(byId("detail-vary"), facts.nominated, "It does not vary.");
              showLines(byId("detail-fields"), facts.fields, "There are no fields.");
              if (!byId("detail").open) byId("detail").showModal();
            }

            function showLines(list, lines, otherwise) {
              const shown = lines.flatMap(line => [
                element("dt", {text: line.name}),
                line.isHidden ? element("dd", {classes: "why", text: "(hidden)"})
                  : line.value === undefined ? element("dd", {classes: "why", text: "(absent)"}) : element("dd", {text: line.value}),
              ]);
              list.replaceChildren(...(shown.length ? shown : [element("dd", {classes: "why", text: otherwise})]));
            }
            """#
    }
#endif
