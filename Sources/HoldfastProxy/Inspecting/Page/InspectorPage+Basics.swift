// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    extension InspectorPage {
        /// Script: elements, numbers as text, and asking the server. All text goes in as text, never as markup.
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
              const isStale = decision.outcome === "hit" && !["fresh", "condition"].includes(decision.reason);
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
