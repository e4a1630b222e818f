// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastTesting
    import Synchronization
    import Testing

    @testable import HoldfastProxy

    @Suite("Checks of origins", .timeLimit(.minutes(20)))
    struct OriginCheckTests {
        private let clock = ManualClock()
        private let group: OriginGroup

        init() throws {
            group = OriginGroup(
                try ["http://a.example", "http://b.example"].map { try ProxyOrigin($0) },
                keepsHost: false
            )
        }

        private func turns(_ count: Int) -> [Int] { (0..<count).map { _ in group.next(at: clock.now) } }

        private func check(_ index: Int, _ results: [Bool]) -> [Bool] {
            results.map { group.note(index, hasPassed: $0) }
        }

        @Test("Two failures in a row are down, two passes up, and what alternates changes nothing")
        func decision() {
            var health = CheckedHealth()
            #expect(
                [true, false, true, false, true].map { health.note(hasPassed: $0) } == [
                    false, false, false, false, false,
                ]
            )
            #expect(health.isUp && health.passed == 3 && health.failed == 2)
            #expect([false, false, false].map { health.note(hasPassed: $0) } == [false, true, false])
            #expect(!health.isUp)
            #expect([true, false, true, true].map { health.note(hasPassed: $0) } == [false, false, false, true])
            #expect(health.isUp)
        }

        @Test("What is down is asked by nobody, whatever its requests came to, until it is up")
        func down() {
            #expect(check(1, [false, false]) == [false, true])
            #expect(turns(3) == [0, 0, 0])
            // A request that was under way says nothing against the checks.
            group.note(1, hasFailed: false, at: clock.now)
            #expect(turns(3) == [0, 0, 0])
            #expect(group.standings(at: clock.now).map(\.isUp) == [true, false])
            #expect(check(1, [true, true]) == [false, true])
            #expect(turns(4) == [1, 0, 1, 0])
        }

        @Test("Where none is both up and not left out, those are asked that are up; where none is up, all")
        func last() {
            _ = check(1, [false, false])
            for _ in 1...3 { group.note(0, hasFailed: true, at: clock.now) }
            #expect(group.standings(at: clock.now).allSatisfy { !$0.isUp })
            #expect(turns(3) == [0, 0, 0])
            _ = check(0, [false, false])
            #expect(Set(turns(4)) == [0, 1])
        }

        @Test("A pass does not end what requests have shown, nor the other way round")
        func apart() {
            for _ in 1...3 { group.note(1, hasFailed: true, at: clock.now) }
            _ = check(1, [true, true])
            #expect(turns(2) == [0, 0])
            clock.advance(by: .seconds(10))
            #expect(Set(turns(2)) == [0, 1])
        }

        @Test(
            "Each is checked at once and then at its interval; one that hangs delays no other; a change for the worse is told once"
        )
        func rhythm() async throws {
            let asked = CountWatch()
            let seen = Mutex<[String: Int]>([:])
            let failures = Mutex<[String]>([])
            var check = OriginCheck(path: "/up")
            check.interval = .seconds(10)
            let checker = OriginChecker(
                check: check,
                group: group,
                clock: clock,
                probe: { member in
                    seen.withLock { $0[member.authority, default: 0] += 1 }
                    asked.increment()
                    guard member.authority == "a.example" else {
                        try? await Task.sleep(for: .seconds(3_600))
                        return "it hung"
                    }
                    return "503 Service Unavailable"
                },
                onFailure: { failure in failures.withLock { $0.append(failure.text) } }
            )
            let task = Task { await checker.run() }
            try await asked.wait(for: 2)
            for round in 1...3 {
                try await clock.waitForSleeps(round)
                clock.advance(by: .seconds(10))
                try await asked.wait(for: 2 + round)
            }
            task.cancel()
            await task.value
            #expect(clock.waits.allSatisfy { $0 == .seconds(10) })
            #expect(seen.withLock { $0 } == ["a.example": 4, "b.example": 1])
            #expect(
                failures.withLock { $0 } == [
                    "the check GET /up of http://a.example fails, so the origin is not used: 503 Service Unavailable"
                ]
            )
            #expect(
                group.standings(at: clock.now).map(\.health.failed) == [
                    group.standings(at: clock.now)[0].health.failed, 0,
                ]
            )
        }

        @Test(
            "Paths and intervals that cannot be are refused",
            arguments: ["", "healthz", "http://a/", "/a b", "/a#b", "/\r\n"]
        )
        func refusals(_ path: String) throws {
            var configuration = ProxyConfiguration(.reverse(try ProxyOrigin("http://a.example")))
            configuration.check = OriginCheck(path: path)
            #expect(throws: ProxyConfigurationError.self) { try configuration.validate() }
            for interval in [Duration.milliseconds(999), .seconds(3_601)] {
                configuration.check = OriginCheck(path: "/")
                configuration.check?.interval = interval
                #expect(throws: ProxyConfigurationError.self) { try configuration.validate() }
            }
            var forward = ProxyConfiguration(.forward())
            forward.check = OriginCheck(path: "/")
            #expect(throws: ProxyConfigurationError.self) { try forward.validate() }
        }
    }
#endif
