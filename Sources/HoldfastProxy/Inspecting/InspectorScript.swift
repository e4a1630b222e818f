// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    extension InspectorPage {
        /// Script: purging, keys, and polling while the page is visible.
        static let start = #"""
            // Runs something that asks the server, and says so where it fails.
            async function attempt(work) {
              try {
                await work();
                return true;
              } catch (error) {
                if (error.status) say(error.message);
                else showLive("off", "no answer");
                return false;
              }
            }

            let pendingOrder = null;

            function confirmPurge(order, what) {
              pendingOrder = order;
              setText(byId("confirm-text"), order.soft
                ? "The origin is asked before the next use of " + what
                : "This removes " + what);
              setText(byId("confirm-yes"), order.soft ? "Mark stale" : "Purge");
              byId("confirm").showModal();
              byId("confirm-no").focus();
            }

            async function purgePending() {
              const order = pendingOrder;
              pendingOrder = null;
              byId("confirm").close();
              if (!order) return;
              await attempt(async () => {
                const outcome = await ask("/api/purge", order);
                const number = outcome.count;
                const entries = number === undefined || number === null ? "The entries" : number === 1 ? "1 entry" : count(number) + " entries";
                const verb = number === 1 ? " was" : " were";
                say(entries + verb + (order.soft ? " marked: the origin is asked before the next use." : " removed."));
                byId("detail").close();
                await firstPage();
                // Where the button stood that was pressed, there may be nothing left.
                if (document.activeElement === document.body) byId("entries-title").focus();
              });
            }

            byId("confirm-yes").addEventListener("click", purgePending);
            byId("confirm-no").addEventListener("click", () => byId("confirm").close());
            byId("detail-close").addEventListener("click", () => byId("detail").close());
            byId("detail").addEventListener("close", () => { opened = null; });
            for (const [id, soft] of [["detail-hard", false], ["detail-soft", true]]) {
              byId(id).addEventListener("click", () => {
                if (opened) confirmPurge({selection: "entry", value: opened.entry.id, soft}, "this entry: " + opened.entry.url);
              });
            }

            byId("purge-selection").addEventListener("change", () => {
              const selection = byId("purge-selection").value;
              setText(byId("purge-label"), selection === "tag" ? "Tag" : "URL");
              byId("purge-value").disabled = selection === "all";
            });
            byId("purge").addEventListener("submit", event => {
              event.preventDefault();
              const selection = byId("purge-selection").value, value = byId("purge-value").value.trim();
              const soft = byId("purge-soft").checked;
              if (selection === "all") return confirmPurge({selection, soft}, "every entry.");
              if (!value) {
                say(selection === "tag" ? "Say which tag." : "Say which URL, such as http://example.com/images.");
                return byId("purge-value").focus();
              }
              confirmPurge({selection, value, soft}, selection === "tag" ? "all entries with the tag " + value : value + " and all below it.");
            });

            let searchTimer = null;
            byId("search").addEventListener("input", () => {
              clearTimeout(searchTimer);
              searchTimer = setTimeout(firstPage, 250);
            });
            byId("refresh").addEventListener("click", () => attempt(loadEntries));
            byId("previous").addEventListener("click", () => { if (listing.cursors.length > 1) firstPage(); });
            byId("next").addEventListener("click", () => {
              if (listing.next === null) return;
              listing.cursors.push(listing.next);
              attempt(loadEntries);
            });
            byId("entries").addEventListener("keydown", event => {
              const row = event.target.closest("tr");
              const other = {ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling}[event.key];
              if (!other) return;
              event.preventDefault();
              other.querySelector(event.target.matches(".open") ? ".open" : ".danger")?.focus();
            });
            document.addEventListener("keydown", event => {
              if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
              if (event.target.closest("input, select, textarea, dialog")) return;
              event.preventDefault();
              byId("search").focus();
            });
            for (const radio of document.querySelectorAll("input[name=span]")) radio.addEventListener("change", showCharts);

            // Polling: once a second while the page is seen and not paused, one round at a time.
            let isPaused = false, rounds = 0, timer = null;

            function showLive(kind, text) {
              byId("live").className = "live " + kind;
              setText(byId("live"), text);
            }

            byId("pause").addEventListener("click", () => {
              isPaused = !isPaused;
              byId("pause").setAttribute("aria-pressed", String(isPaused));
              if (isPaused) showLive("", "paused");
              else schedule(0);
            });

            async function round() {
              timer = null;
              if (isPaused || document.hidden) return;
              const isWell = await attempt(async () => {
                showSummary(await ask("/api/summary"));
                await loadCalls();
                const isResting = byId("search").value.trim() === "" && !byId("detail").open && !byId("confirm").open;
                if (rounds === 0 || rounds % 3 === 0 && isResting) await loadEntries();
              });
              rounds += 1;
              if (isWell && !isPaused) showLive("on", "live");
              document.documentElement.dataset.rounds = String(rounds);
              schedule(isWell ? 1000 : 3000);
            }

            function schedule(delay) {
              clearTimeout(timer);
              timer = setTimeout(round, delay);
            }

            document.addEventListener("visibilitychange", () => { if (!document.hidden && !isPaused) schedule(0); });
            setInterval(() => { if (!isPaused) tick(); }, 1000);
            schedule(0);
            """#
    }

    extension InspectorPage {
        /// Script: elements, numbers as text, and requests to the server. All text is inserted as text, never as
        /// markup.
        static let basics = #"""
            const byId = id => document.getElementById(id);
            const word = document.querySelector("meta[name=holdfast-word]").content;

            function element(name, options, ...children) {
              const made = document.createElement(name);
              const {text, classes, label, ...attributes} = options ?? {};
              // Said again, since a table that is laid out as blocks is none to some screen readers.
              const role = {tr: "row", td: "cell"}[name];
              if (role) made.setAttribute("role", role);
              if (text !== undefined && text !== null) made.textContent = text;
              if (classes) made.className = classes;
              if (label) made.setAttribute("aria-label", label);
              for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
              made.append(...children);
              return made;
            }

            function drawn(name, attributes) {
              const made = document.createElementNS("http://www.w3.org/2000/svg", name);
              for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
              return made;
            }

            function setText(node, text) {
              if (node.textContent !== text) node.textContent = text;
            }

            const plain = new Intl.NumberFormat("en");
            const count = number => number === null || number === undefined ? "–" : plain.format(number);
            const percent = share => (100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0) + " %";

            function bytes(number) {
              if (number === null || number === undefined) return "–";
              const units = ["B", "KiB", "MiB", "GiB", "TiB"];
              let size = number, unit = 0;
              while (size >= 1024 && unit < units.length - 1) { size /= 1024; unit += 1; }
              return (unit === 0 ? size : size.toFixed(size < 10 ? 1 : 0)) + " " + units[unit];
            }

            function span(seconds) {
              const whole = Math.max(0, Math.floor(seconds));
              if (whole < 60) return whole + " s";
              if (whole < 3600) return Math.floor(whole / 60) + " min " + String(whole % 60).padStart(2, "0") + " s";
              if (whole < 172800) return Math.floor(whole / 3600) + " h " + String(Math.floor(whole % 3600 / 60)).padStart(2, "0") + " min";
              return Math.floor(whole / 86400) + " days";
            }

            function milliseconds(number) {
              if (number === null || number === undefined) return "–";
              if (number < 10) return number.toFixed(2) + " ms";
              return number < 1000 ? number.toFixed(0) + " ms" : (number / 1000).toFixed(2) + " s";
            }

            const clockTime = at => new Date(at).toLocaleTimeString("en-GB");
            const dateTime = at => new Date(at).toLocaleString("en-GB");

            function say(text) {
              setText(byId("message"), text);
            }

            // An answer that takes this long is no answer; the next question may fare better.
            const patience = 15000;

            async function ask(path, order) {
              const options = {cache: "no-store", signal: AbortSignal.timeout(patience)};
              if (order) {
                options.method = "POST";
                options.headers = {"Content-Type": "application/json", "X-Holdfast-Inspector": word};
                options.body = JSON.stringify(order);
              }
              const response = await fetch(path, options);
              if (!response.ok) {
                const refused = new Error((await response.text()).trim() || "The inspector answered " + response.status + ".");
                refused.status = response.status;
                throw refused;
              }
              return response.json();
            }

            // Brings the rows of a table in line with a list: rows stay the same elements, so that focus and selection stay too.
            function bringInLine(body, items, keyOf, make, update) {
              const old = new Map();
              for (const row of body.children) old.set(row.key, row);
              let place = body.firstElementChild;
              for (const item of items) {
                const key = keyOf(item);
                let row = old.get(key);
                if (row) {
                  old.delete(key);
                } else {
                  row = make(item);
                  const heads = body.parentElement.tHead.rows[0].cells;
                  for (const cell of row.cells) cell.dataset.label = heads[cell.cellIndex].textContent;
                  row.key = key;
                }
                if (update) update(row, item);
                if (row === place) place = place.nextElementSibling;
                else body.insertBefore(row, place);
              }
              for (const row of old.values()) row.remove();
            }

            // What stands in a table that has no rows.
            function noteEmpty(body, columns, text) {
              const note = element("tr", {}, element("td", {classes: "empty", colspan: columns, text}));
              note.key = "empty";
              body.replaceChildren(note);
            }

            const outcomeClass = {
              hit: "hits", revalidated: "revalidated", collapsed: "collapsed", miss: "misses", bypass: "bypasses", unsatisfiable: "stale",
            };

            // A decision as outcome, reason and clause.
            function decisionText(decision) {
              if (!decision) return [element("span", {classes: "why", text: "–"})];
              const isStale = decision.outcome === "hit" && decision.reason !== "fresh";
              const kind = isStale ? "stale" : outcomeClass[decision.outcome] ?? "bypasses";
              const parts = [
                element("span", {classes: "mark t-" + kind, text: decision.outcome}),
                ": " + decision.reason,
                element("span", {classes: "why", text: decision.section ? " (" + decision.section + ")" : ""}),
              ];
              if (decision.storage) parts.push(element("span", {classes: "why", text: "; " + decision.storage}));
              return parts;
            }
            """#
    }
#endif
