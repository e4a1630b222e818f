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
              ["Stale, on error", facts => count(facts.totals.errorHits)],
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
              if (origins.length === 0) return noteEmpty(byId("origins"), 8, "No origin was asked for yet.");
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
#endif
