// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    extension InspectorPage {
        /// Script: the calls that ended last.
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
#endif
