// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastSemantics
    import Testing

    @testable import HoldfastProxy

    @Suite("Recent calls")
    struct RecentCallsTests {
        private static func event(_ name: ServiceEvent.Name, _ call: Int, attempt: Int? = nil) -> ServiceEvent {
            var event = ServiceEvent(
                name,
                callID: CallID(number: UInt64(call)),
                timestamp: Timestamp(millisecondsSinceEpoch: 0)
            )
            event.attempt = attempt
            return event
        }

        private static func ended(_ call: Int) -> CallRecord { CallRecord(event(.callEnded, call)) }

        private static func failed(_ call: Int, _ attempt: Int) -> AttemptSummary {
            AttemptSummary(event(.retryScheduled, call, attempt: attempt))
        }

        @Test("The last 200 are kept, newest first", arguments: [0, 1, 199, 200, 201, 4_321])
        func bound(count: Int) {
            var calls = RecentCalls()
            for call in 0..<count { calls.ended(Self.ended(call)) }
            let kept = calls.calls(after: 0, limit: .max)
            #expect(kept.map(\.id.number) == (max(0, count - 200)..<count).reversed().map { UInt64($0) })
            #expect(calls.count == UInt64(count))
        }

        @Test(
            "Only calls after a given number are returned, and no more than requested",
            arguments: [0, 5, 198, 250, 251, 900]
        )
        func after(number: Int) {
            var calls = RecentCalls()
            for call in 1...250 { calls.ended(Self.ended(call)) }
            let expected = (max(51, number + 1)...max(250, number + 1)).filter { $0 <= 250 }.reversed().map {
                UInt64($0)
            }
            #expect(calls.calls(after: UInt64(number), limit: .max).map(\.number) == expected)
            #expect(calls.calls(after: UInt64(number), limit: 3).map(\.number) == Array(expected.prefix(3)))
            #expect(calls.calls(after: .max, limit: 3).isEmpty)
        }

        @Test("The first 16 failed attempts are kept with their call")
        func attempts() {
            var calls = RecentCalls()
            for attempt in 1...20 {
                calls.failed(Self.failed(7, attempt), of: CallID(number: 7))
                calls.failed(Self.failed(8, attempt), of: CallID(number: 8))
            }
            calls.ended(Self.ended(7))
            #expect(calls.calls(after: 0, limit: 1).first?.attempts.map(\.number) == Array(1...16))
            #expect(calls.pendingCount == 1)
            calls.ended(Self.ended(9))
            #expect(calls.calls(after: 0, limit: 1).first?.attempts.isEmpty == true)
        }

        @Test("Calls whose end is never reported take bounded space, and the newest keep their attempts")
        func unended() {
            var calls = RecentCalls()
            for call in 0..<10_000 {
                calls.failed(Self.failed(call, 1), of: CallID(number: UInt64(call)))
                #expect(calls.pendingCount <= RecentCalls.pendingLimit)
            }
            calls.ended(Self.ended(9_999))
            calls.ended(Self.ended(0))
            #expect(calls.calls(after: 0, limit: 2).map(\.attempts.count) == [0, 1])
        }
    }
#endif
