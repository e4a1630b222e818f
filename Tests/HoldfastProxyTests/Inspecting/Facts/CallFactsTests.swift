// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Foundation
    import HoldfastSemantics
    import Testing

    @testable import Holdfast
    @testable import HoldfastProxy

    @Suite("Calls as JSON")
    struct CallFactsTests {
        private static func facts(_ source: ResponseSource?, _ duration: Duration) throws -> [String: Any] {
            var event = ServiceEvent(.callEnded, callID: CallID(number: 1), timestamp: Timestamp(secondsSinceEpoch: 2))
            event.source = source
            event.delay = duration
            let data = try JSONEncoder().encode(CallFacts(CallRecord(event)))
            return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        }

        @Test(
            "Every source has a name of its own",
            arguments: [
                (.network(attempts: 3), "network"), (.fresh, "fresh"), (.stale, "stale"), (.revalidated, "revalidated"),
                (.collapsed, "collapsed"), (.inProcess, "in-process"), (.synthesized, "synthesized"), (nil, nil),
            ] as [(ResponseSource?, String?)]
        )
        func sources(source: ResponseSource?, word: String?) throws {
            let facts = try Self.facts(source, .zero)
            #expect(facts["source"] as? String == word)
            #expect(facts["sends"] as? Int == (word == "network" ? 3 : nil))
            #expect(facts["at"] as? Int == 2000)
        }

        @Test(
            "Times are milliseconds with three decimals, however long they are",
            arguments: [
                (.zero, 0), (.microseconds(1), 0.001), (.nanoseconds(1_499), 0.001), (.milliseconds(-5), -5),
                (.seconds(86_400), 86_400_000), (.seconds(Int64.max), 9.223372036854775807e21),
            ] as [(Duration, Double)]
        )
        func times(duration: Duration, milliseconds: Double) throws {
            #expect(try Self.facts(nil, duration)["milliseconds"] as? Double == milliseconds)
        }
    }
#endif
