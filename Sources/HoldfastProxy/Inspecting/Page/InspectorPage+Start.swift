// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    extension InspectorPage {
        /// Script: purging, keys, and the questions that are asked again and again while the page is seen.
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
              setText(byId("confirm-text"), order.softly
                ? "The origin is asked before the next use of " + what
                : "This removes " + what);
              setText(byId("confirm-yes"), order.softly ? "Purge softly" : "Purge");
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
                say(entries + verb + (order.softly ? " marked: the origin is asked before the next use." : " removed."));
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
            for (const [id, softly] of [["detail-hard", false], ["detail-soft", true]]) {
              byId(id).addEventListener("click", () => {
                if (opened) confirmPurge({selection: "entry", value: opened.entry.id, softly}, "this entry: " + opened.entry.url);
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
              const softly = byId("purge-softly").checked;
              if (selection === "all") return confirmPurge({selection, softly}, "every entry.");
              if (!value) {
                say(selection === "tag" ? "Say which tag." : "Say which URL, such as http://example.com/images.");
                return byId("purge-value").focus();
              }
              confirmPurge({selection, value, softly}, selection === "tag" ? "all entries with the tag " + value : value + " and all beneath it.");
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
#endif
