// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastTesting
    import Testing

    @testable import HoldfastProxy

    @Suite("Several origins take turns")
    struct OriginGroupTests {
        private let clock = ManualClock()
        private let group: OriginGroup

        init() throws {
            let origins = try ["http://a.example", "http://b.example:81", "https://[2001:db8::1]"].map {
                try ProxyOrigin($0)
            }
            group = OriginGroup(origins, keepsHost: false)
        }

        private func turns(_ count: Int) -> [Int] { (0..<count).map { _ in group.next(at: clock.now) } }

        private func fail(_ index: Int, _ times: Int) {
            for _ in 0..<times { group.note(index, hasFailed: true, at: clock.now) }
        }

        @Test("Each origin has its own key and Host")
        func members() {
            #expect(
                group.members.map(\.key.description) == [
                    "http://a.example:80", "http://b.example:81", "https://[2001:db8::1]:443",
                ]
            )
            #expect(group.members.map(\.authority) == ["a.example", "b.example:81", "[2001:db8::1]"])
        }

        @Test(
            "Round robin: three failures in a row exclude an origin for 10 s, one more for 20 s, and a success ends it"
        )
        func ejection() {
            #expect(turns(4) == [0, 1, 2, 0])
            fail(1, 2)
            group.note(1, hasFailed: false, at: clock.now)
            fail(1, 2)
            #expect(group.standings(at: clock.now).map(\.isUp) == [true, true, true])
            fail(1, 1)
            #expect(group.standings(at: clock.now).map(\.isUp) == [true, false, true])
            #expect(turns(4) == [2, 0, 2, 0])
            clock.advance(by: .seconds(10))
            #expect(Set(turns(3)) == [0, 1, 2])
            fail(1, 1)
            clock.advance(by: .seconds(19))
            #expect(!turns(4).contains(1))
            clock.advance(by: .seconds(1))
            #expect(turns(3).contains(1))
            group.note(1, hasFailed: false, at: clock.now)
            fail(1, 2)
            #expect(turns(3).contains(1))
        }

        @Test("Exclusions grow to one minute; while all origins are excluded, all are used")
        func bounds() {
            for pause in [10, 20, 40, 60, 60] {
                fail(0, 3)
                clock.advance(by: .seconds(pause - 1))
                #expect(group.standings(at: clock.now).map(\.isUp) == [false, true, true])
                clock.advance(by: .seconds(1))
                #expect(group.standings(at: clock.now).map(\.isUp) == [true, true, true])
            }
            for index in 0..<3 { fail(index, 3) }
            #expect(group.standings(at: clock.now).allSatisfy { !$0.isUp })
            #expect(Set(turns(3)) == [0, 1, 2])
        }

        @Test("A call's retry goes to another server, whoever took a turn in between")
        func retryElsewhere() throws {
            let group = OriginGroup(try [1, 2].map { try ProxyOrigin("http://127.0.0.1:\($0)") }, keepsHost: false)
            let (clock, call) = (ManualClock(), CallContext().callID)
            let first = group.next(at: clock.now, for: call)
            group.note(first, hasFailed: true, at: clock.now, for: call)
            // Another request's turns; it succeeds.
            _ = group.next(at: clock.now)
            group.note(first, hasFailed: false, at: clock.now)
            #expect(group.next(at: clock.now, for: call) != first)
        }
    }
#endif
