// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    extension InspectorPage {
        /// Script: totals, reasons and origins.
        static let summary = #"""
            const cards = [
              ["Hit rate", facts => percent(facts.totals.hitRatio)],
              ["Byte hit rate", facts => percent(facts.totals.byteHitRatio)],
              ["Requests", facts => count(facts.totals.requests)],
              ["Fresh hits", facts => count(facts.totals.hits)],
              ["Stale, accepted", facts => count(facts.totals.staleHits)],
              ["Stale, revalidating", facts => count(facts.totals.revalidatingHits)],
              ["Stale, on error", facts => count(facts.totals.staleOnError)],
              ["Revalidated (304)", facts => count(facts.totals.revalidated)],
              ["Collapsed", facts => count(facts.totals.collapsed)],
              ["Misses", facts => count(facts.totals.misses)],
              ["Not looked up", facts => count(facts.totals.bypasses)],
              ["Bytes saved", facts => bytes(facts.totals.bytesSaved)],
              ["Bytes fetched", facts => bytes(facts.totals.bytesFetched)],
              ["Waiting saved", facts => span(facts.totals.secondsSaved)],
              ["Responses stored", facts => count(facts.totals.stored)],
              ["Entries", facts => count(facts.store.entries)],
              ["Store used", facts => bytes(facts.store.bytes)],
              ["Store capacity", facts => bytes(facts.store.capacity)],
              ["Evicted", facts => count(facts.store.evicted)],
              ["Store failures", facts => count(facts.totals.storeFailures + facts.store.failures + facts.store.corrupt)],
            ].map(([name, write]) => {
              const value = element("dd", {text: "–"});
              byId("cards").append(element("div", {}, element("dt", {text: name}), value));
              return [value, write];
            });

            let latest = null;

            function showSummary(facts) {
              latest = facts;
              setText(byId("mode"), facts.isShared ? "shared cache" : "private cache");
              setText(byId("uptime"), "up " + span(facts.uptime));
              for (const [value, write] of cards) setText(value, write(facts));
              showCharts();
              showReasons(byId("reasons"), facts.reasons);
              showReasons(byId("not-stored"), facts.notStored);
              showOrigins(facts.origins, facts.hasCircuit);
            }

            function showCharts() {
              if (!latest) return;
              const unit = document.querySelector("input[name=span]:checked").value;
              for (const chart of [rateChart, requestChart, byteChart]) chart.show(latest[unit], unit === "seconds" ? "s" : "min");
            }

            function showReasons(body, reasons) {
              if (reasons.length === 0) return noteEmpty(body, 2, "None so far.");
              const make = reason => element("tr", {},
                element("td", {}, reason.code, element("span", {classes: "why", text: reason.section ? " (" + reason.section + ")" : ""})),
                element("td", {classes: "number"}));
              bringInLine(body, reasons, reason => reason.code, make, (row, reason) => setText(row.lastElementChild, count(reason.count)));
            }

            function circuitText(origin, hasCircuit) {
              if (origin.circuitOpensIn === undefined) return hasCircuit ? ["closed", "t-hits"] : ["none", ""];
              if (origin.circuitOpensIn > 0) return ["open for " + span(Math.ceil(origin.circuitOpensIn)), "t-misses"];
              return ["open, probing", "t-stale"];
            }

            function waitingText(retries) {
              const parts = [];
              if (retries.waiting) parts.push(count(retries.waiting) + (retries.waiting === 1 ? " call" : " calls"));
              if (retries.gateOpensIn !== undefined) parts.push("gate opens in " + span(Math.ceil(retries.gateOpensIn)));
              if (retries.learnedRate !== undefined) parts.push("at most " + retries.learnedRate.toFixed(1) + "/s");
              const stops = Object.entries(retries.stops).sort((a, b) => b[1] - a[1]).slice(0, 3);
              if (stops.length) parts.push("given up: " + stops.map(([reason, number]) => count(number) + " " + reason).join(", "));
              return parts.join("; ") || "–";
            }

            function showOrigins(origins, hasCircuit) {
              if (origins.length === 0) return noteEmpty(byId("origins"), 8, "No origin has been requested yet.");
              const make = () => element("tr", {},
                element("td", {classes: "url"}), element("td", {classes: "number"}), element("td", {classes: "number"}), element("td"),
                element("td", {classes: "number"}), element("td", {classes: "wide number"}), element("td", {classes: "wide number"}),
                element("td", {classes: "wide"}));
              bringInLine(byId("origins"), origins, origin => origin.origin ?? "", make, (row, origin) => {
                const retries = origin.retries;
                const [circuit, kind] = circuitText(origin, hasCircuit);
                const texts = [
                  origin.origin ?? "all others", count(origin.requests), percent(origin.hitRatio), circuit,
                  retries ? retries.balance === undefined ? "no budget" : count(retries.balance) : "–",
                  retries ? count(retries.failedAttempts) : "–", retries ? count(retries.retries) : "–",
                  retries ? waitingText(retries) : "–",
                ];
                texts.forEach((text, i) => setText(row.children[i], text));
                row.children[3].className = kind ? "mark " + kind : "";
              });
            }
            """#
    }

    extension InspectorPage {
        /// Script: the three charts, drawn as SVG.
        static let charts = #"""
            const kinds = [
              ["hits", "hits"], ["stale", "stale hits"], ["revalidated", "revalidated"], ["collapsed", "collapsed"],
              ["misses", "misses"], ["bypasses", "not looked up"],
            ];
            const byteKinds = [["bytesSaved", "from the cache"], ["bytesFetched", "from the origin"]];
            const height = 100;

            const lookedUp = (series, i) =>
              series.hits[i] + series.stale[i] + series.revalidated[i] + series.collapsed[i] + series.misses[i];

            const steps = [1, 2, 3, 4, 5, 6, 8, 10];

            function ceiling(value) {
              if (value <= 1) return 1;
              const power = Math.pow(10, Math.floor(Math.log10(value)));
              return steps.map(step => step * power).find(step => step >= value);
            }

            // The same in units of 1,024.
            function byteCeiling(value) {
              const unit = Math.pow(1024, Math.floor(Math.log2(Math.max(value, 1024)) / 10));
              return ceiling(value / unit) * unit;
            }

            class Chart {
              constructor(id, title, tell) {
                this.tell = tell;
                this.chosen = null;
                const titleID = id + "-title";
                this.scale = element("span", {classes: "quiet"});
                this.picture = drawn("svg", {
                  role: "img", tabindex: "0", "aria-labelledby": titleID, "aria-describedby": id + "-told", preserveAspectRatio: "none",
                });
                this.told = element("output", {id: id + "-told"});
                this.oldest = element("span");
                const axis = element("div", {classes: "axis", "aria-hidden": "true"}, this.oldest, element("span", {text: "now"}));
                byId(id).append(
                  element("figcaption", {}, element("span", {id: titleID, text: title}), this.scale), this.picture, axis, this.told);
                this.picture.addEventListener("pointermove", event => {
                  const box = this.picture.getBoundingClientRect();
                  this.choose(Math.floor((event.clientX - box.left) / box.width * this.length));
                });
                this.picture.addEventListener("pointerleave", () => this.choose(null));
                this.picture.addEventListener("blur", () => this.choose(null));
                this.picture.addEventListener("keydown", event => {
                  const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10}[event.key];
                  if (!step && event.key !== "Escape") return;
                  event.preventDefault();
                  this.choose(step ? (this.chosen ?? this.length) + step : null);
                });
              }

              get length() { return this.series ? this.series.requests.length : 1; }

              choose(place) {
                this.chosen = place === null ? null : Math.min(Math.max(place, 0), this.length - 1);
                this.draw();
              }

              show(series, unit) {
                this.series = series;
                this.unit = unit;
                setText(this.oldest, (unit === "s" ? series.requests.length / 60 : series.requests.length) + " minutes ago");
                this.draw();
              }

              draw() {
                if (!this.series) return;
                this.picture.setAttribute("viewBox", "0 0 " + this.length + " " + height);
                const lines = [25, 50, 75].map(y => drawn("path", {class: "grid", d: "M0 " + y + "H" + this.length}));
                this.picture.replaceChildren(...lines, ...this.shapes());
                if (this.chosen !== null) {
                  this.picture.append(drawn("path", {class: "cursor", d: "M" + (this.chosen + 0.5) + " 0V" + height}));
                }
                const back = this.chosen === null ? null : this.length - 1 - this.chosen;
                const when = back === null ? "" : (back === 0 ? "now" : back + " " + this.unit + " ago") + ": ";
                setText(this.told, when + this.tell(this.series, this.chosen));
              }
            }

            class Stack extends Chart {
              constructor(id, title, kinds, write, ceiling, tell) {
                super(id, title, tell);
                this.kinds = kinds;
                this.ceiling = ceiling;
                this.write = write;
              }

              shapes() {
                const sums = this.series.requests.map((_, i) => this.kinds.reduce((sum, [key]) => sum + this.series[key][i], 0));
                const top = this.ceiling(Math.max(...sums));
                setText(this.scale, "top: " + this.write(top) + (this.unit === "s" ? "/s" : "/min"));
                const bases = new Array(this.length).fill(height);
                return this.kinds.map(([key]) => {
                  let path = "";
                  this.series[key].forEach((value, i) => {
                    if (value <= 0) return;
                    const tall = value / top * height;
                    bases[i] -= tall;
                    path += "M" + i + " " + bases[i].toFixed(2) + "h1v" + tall.toFixed(2) + "h-1z";
                  });
                  return drawn("path", {class: "f-" + key, d: path, "data-kind": key});
                });
              }
            }

            class Rate extends Chart {
              shapes() {
                setText(this.scale, "top: 100 %");
                let path = "", isDrawing = false;
                for (let i = 0; i < this.length; i += 1) {
                  const all = lookedUp(this.series, i);
                  // Where nothing was asked there is no rate; a lone point still shows as a short line.
                  if (all === 0) { isDrawing = false; continue; }
                  const y = (height - (this.series.hits[i] + this.series.stale[i]) / all * height).toFixed(2);
                  path += (isDrawing ? "L" + (i + 0.5) + " " + y : "M" + i + " " + y + "H" + (i + 0.9));
                  isDrawing = true;
                }
                return [drawn("path", {class: "rate", d: path})];
              }
            }

            const pick = (list, i) => i === null ? list.reduce((sum, value) => sum + value, 0) : list[i];

            const rateChart = new Rate("chart-rate", "Hit rate", (series, i) => {
              const hits = pick(series.hits, i) + pick(series.stale, i);
              const all = hits + pick(series.revalidated, i) + pick(series.collapsed, i) + pick(series.misses, i);
              return all ? percent(hits / all) + " of " + count(all) + " looked up" : "nothing was looked up";
            });
            const requestChart = new Stack("chart-requests", "Requests", kinds, count, ceiling, (series, i) =>
              kinds.map(([key, name]) => [pick(series[key], i), name]).filter(([number]) => number > 0)
                .map(([number, name]) => count(number) + " " + name).join(", ") || "no requests");
            const byteChart = new Stack("chart-bytes", "Body bytes", byteKinds, bytes, byteCeiling, (series, i) =>
              byteKinds.map(([key, name]) => bytes(pick(series[key], i)) + " " + name).join(", "));

            for (const [key, name] of kinds) {
              const mark = drawn("svg", {viewBox: "0 0 1 1", "aria-hidden": "true"});
              mark.append(drawn("path", {class: "f-" + key, d: "M0 0h1v1h-1z"}));
              byId("legend").append(element("li", {}, mark, name));
            }
            """#
    }

    extension InspectorPage {
        /// Script: the recently ended calls.
        static let calls = #"""
            const mostCalls = 100;
            let callList = [], newestCall = 0;

            // What a call took: each attempt that failed, the wait behind it, and how it ended.
            function attemptText(call) {
              if (call.attempts.length === 0) return call.sends ? String(call.sends) : "–";
              const parts = [];
              for (const attempt of call.attempts) {
                parts.push(String(attempt.status ?? attempt.error ?? "failed"));
                if (attempt.delay !== undefined) parts.push((attempt.word ? attempt.word + ", " : "") + "wait " + milliseconds(attempt.delay));
                else if (attempt.word) parts.push("given up: " + attempt.word);
              }
              const last = call.attempts[call.attempts.length - 1];
              if (last.delay !== undefined) parts.push(String(call.status ?? call.error ?? ""));
              return parts.join(" → ");
            }

            function makeCallRow(call) {
              const isBad = call.error || call.status >= 500;
              return element("tr", {},
                element("td", {classes: "wide still", text: clockTime(call.at)}),
                element("td", {}, element("span", {classes: "url", text: call.method + " " + call.url}),
                  call.operation ? element("span", {classes: "why", text: " " + call.operation}) : ""),
                element("td", {}, ...decisionText(call.decision)),
                element("td", {classes: "mark" + (isBad ? " t-misses" : ""), text: String(call.status ?? call.error ?? "–")}),
                element("td", {classes: "wide", text: attemptText(call)}),
                element("td", {classes: "number", text: milliseconds(call.milliseconds)}));
            }

            async function loadCalls() {
              const facts = await ask("/api/calls?after=" + newestCall);
              // The numbers of a proxy that was started anew begin anew.
              if (facts.newest < newestCall) {
                newestCall = 0;
                callList = [];
                return loadCalls();
              }
              newestCall = facts.newest;
              callList = facts.calls.concat(callList).slice(0, mostCalls);
              if (callList.length === 0) return noteEmpty(byId("calls"), 6, "No call has ended yet.");
              bringInLine(byId("calls"), callList, call => call.number, makeCallRow);
            }
            """#
    }

    extension InspectorPage {
        /// Script: the list of entries, its search and its pages, and the details of one entry.
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
              purge.addEventListener("click", () => confirmPurge({selection: "entry", value: row.entry.id, soft: false}, "this entry: " + row.entry.url));
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
