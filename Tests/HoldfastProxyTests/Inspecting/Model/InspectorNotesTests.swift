// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import HoldfastSemantics
    import Testing

    @testable import Holdfast
    @testable import HoldfastProxy

    @Suite("Remembered decisions and circuits")
    struct InspectorNotesTests {
        private static let time = Timestamp(secondsSinceEpoch: 1)

        @Test("The last decision of a URL is returned, and never that of another URL")
        func decisions() {
            var decisions = LastDecisions()
            let urls = (0..<20_000).map { "http://origin.example/\($0)" }
            for url in urls {
                decisions.note(
                    CacheDecision(.hit, reason: CacheReason(code: url)),
                    hash: LastDecisions.hash(url),
                    time: Self.time
                )
            }
            var kept = 0
            for url in urls {
                guard let noted = decisions.last(hash: LastDecisions.hash(url)) else { continue }
                kept += 1
                #expect(noted.decision.reason.code == url)
            }
            #expect((LastDecisions.limit / 2...LastDecisions.limit).contains(kept))
            decisions.note(
                CacheDecision(.miss, reason: .stale),
                hash: LastDecisions.hash("http://new.example/"),
                time: Self.time
            )
            #expect(decisions.last(hash: LastDecisions.hash("http://new.example/"))?.decision.outcome == .miss)
        }

        @Test("The circuits that opened last are kept, up to the limit")
        func circuits() {
            var circuits = CircuitStates()
            for number in 0..<1_000 {
                circuits.opened("http://\(number).example", until: MonotonicInstant(sinceOrigin: .seconds(number)))
            }
            #expect(circuits.open.count == CircuitStates.limit)
            #expect(circuits.open["http://999.example"] != nil)
            circuits.closed("http://999.example")
            #expect(circuits.open["http://999.example"] == nil)
        }
    }
#endif
