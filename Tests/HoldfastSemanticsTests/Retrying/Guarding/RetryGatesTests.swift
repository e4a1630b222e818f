// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import HoldfastTesting
import Testing

/// The gates of an origin, and a clock that is moved by hand.
private struct Bench {
    var gates = RetryGates()
    var now: Duration = .zero

    /// An answer: 429, 503 or a quota asking for so many seconds; nil: a good one.
    @discardableResult
    mutating func answer(
        _ kind: GateNotice.Kind = .answer(succeeded: true),
        _ seconds: Int = 0,
        from resource: Int,
        credential: Int = 1000,
        isProbe: Bool = false
    ) -> RetryGates.Effect {
        gates.answered(
            GateNotice(kind, asked: .seconds(seconds)),
            from: GatePlace(resource: resource, credential: credential),
            isProbe: isProbe,
            now: now
        )
    }

    mutating func check(_ resource: Int, credential: Int = 1000, admitsProbe: Bool = false) -> RetryGates.Answer {
        gates.check(
            GatePlace(resource: resource, credential: credential),
            admitsProbe: admitsProbe,
            longestWait: .seconds(60),
            now: now
        )
    }

    /// Until when a call is held back; nil: it may go.
    mutating func opens(_ resource: Int, credential: Int = 1000) -> Duration? {
        guard case .closed(let gate) = check(resource, credential: credential) else { return nil }
        return gate.opens
    }
}

@Suite("Retry gates")
struct RetryGatesTests {
    @Test("503 with Retry-After closes its resource from the second in a row, for all callers, and no other resource")
    func strikes() {
        var bench = Bench()
        #expect(bench.answer(.unavailable, 10, from: 1).hasClosed == false)
        #expect(bench.opens(1) == nil)
        bench.answer(from: 1)
        #expect(bench.answer(.unavailable, 10, from: 1).hasClosed == false, "not in a row")
        #expect(bench.answer(.unavailable, 10, from: 1).hasClosed)
        #expect(
            bench.opens(1) == .seconds(10) && bench.opens(1, credential: 7) == .seconds(10) && bench.opens(2) == nil
        )
        bench.now = .seconds(10)
        #expect(bench.opens(1) == nil)
        var mixed = Bench()
        mixed.answer(.unavailable, 10, from: 1)
        mixed.answer(.quota, 1, from: 1)
        #expect(mixed.answer(.unavailable, 10, from: 1).hasClosed == false, "not in a row")
    }

    @Test(
        "It closes the origin at a score of six with three resources: each 503 adds one, another response takes off two",
        arguments: [
            (pattern: "abcabc", isClosed: true), ("abcab", false), ("ababababab", false), ("abcabgc", false),
            ("abcabgcabc", true), ("aabbcc", true), ("abcabcg", true), ("ggggabcabc", true),
        ]
    )
    func widening(_ row: (pattern: String, isClosed: Bool)) {
        var bench = Bench()
        for letter in row.pattern.utf8 {
            if letter == UInt8(ascii: "g") {
                bench.answer(from: 50)
            } else {
                bench.answer(.unavailable, 10, from: Int(letter))
            }
        }
        #expect((bench.opens(51) != nil) == row.isClosed)
        #expect((bench.opens(51, credential: 5) != nil) == row.isClosed)
    }

    @Test("429 with Retry-After closes the origin at once, for its credential")
    func throttled() {
        var bench = Bench()
        #expect(bench.answer(.throttled, 10, from: 1).hasClosed)
        #expect(bench.opens(1) == .seconds(10) && bench.opens(2) == .seconds(10))
        #expect(bench.opens(1, credential: 5) == nil && bench.opens(2, credential: 5) == nil)
    }

    @Test("Probes use another resource: the first after 100 ms, then one a second")
    func probes() {
        var bench = Bench()
        bench.answer(.throttled, 3, from: 1)
        var probes: [Duration] = []
        for step in 1..<300 {
            bench.now = .milliseconds(step * 10)
            #expect(bench.check(1, admitsProbe: true) != .probe, "what asked for the pause is not probed")
            if bench.check(2, admitsProbe: true) == .probe { probes.append(bench.now) }
        }
        #expect(probes == [.milliseconds(100), .milliseconds(1100), .milliseconds(2100)])
    }

    @Test(
        "A successful probe opens the origin, a failed one does not; 429s then close their resource for a minute"
    )
    func narrows() {
        var bench = Bench()
        bench.answer(.throttled, 30, from: 1)
        bench.now = .milliseconds(100)
        #expect(bench.check(2, admitsProbe: true) == .probe)
        bench.answer(.answer(succeeded: false), from: 2, isProbe: true)
        #expect(bench.opens(2) == .seconds(30))
        bench.now = .milliseconds(1100)
        #expect(bench.check(2, admitsProbe: true) == .probe)
        #expect(bench.answer(from: 2, isProbe: true).opened == [1000: .milliseconds(550)])
        #expect(bench.opens(2) == nil && bench.opens(1) == .seconds(30))
        bench.answer(.throttled, 10, from: 3)
        #expect(bench.opens(3) != nil && bench.opens(2) == nil)
        for resource in [4, 5, 3, 4] { bench.answer(.throttled, 10, from: resource) }
        #expect(bench.opens(9) == nil)
        bench.answer(.throttled, 10, from: 5)
        #expect(bench.opens(9) != nil)
        bench.now = .seconds(62)
        bench.answer(.throttled, 10, from: 1)
        #expect(bench.opens(2) == .seconds(72))
    }

    @Test("A wide gate says so until the first probe is answered, for half a second at most")
    func holds() {
        var bench = Bench()
        bench.answer(.throttled, 30, from: 1)
        func holds() -> Duration? {
            guard case .closed(let gate) = bench.check(2) else { return nil }
            return gate.holdsUntil
        }
        #expect(holds() == .milliseconds(500))
        bench.now = .milliseconds(500)
        #expect(holds() == nil)
    }

    @Test("An empty quota closes its resource, the origin only by evidence, and what it is counted by at once")
    func quotas() {
        var bench = Bench()
        bench.answer(.quota, 10, from: 1)
        #expect(bench.opens(1) == .seconds(10) && bench.opens(2) == nil && bench.opens(1, credential: 5) == nil)
        for resource in [2, 3, 1, 2, 3] { bench.answer(.quota, 10, from: resource) }
        #expect(bench.opens(9) == .seconds(10) && bench.opens(9, credential: 5) == nil)

        var counted = RetryGates()
        let place = { GatePlace(resource: $0, credential: 1) }
        for resource in [1, 2] {
            let notice = GateNotice(.quota, asked: .seconds(resource * 10), partition: 77)
            _ = counted.answered(notice, from: place(resource), isProbe: false, now: .zero)
        }
        guard case .closed(let gate) = counted.check(place(1), admitsProbe: false, longestWait: .zero, now: .zero)
        else {
            Issue.record("both are counted together")
            return
        }
        #expect(gate.opens == .seconds(20))
        #expect(counted.check(place(3), admitsProbe: false, longestWait: .zero, now: .zero) == .open)
        let other = GatePlace(resource: 1, credential: 2)
        #expect(
            counted.check(other, admitsProbe: false, longestWait: .zero, now: .zero) == .open,
            "another caller may be counted elsewhere"
        )
    }

    @Test("A resource that refuses its probe leaves an origin open that another resource's probe has opened")
    func resourceProbe() {
        var bench = Bench()
        bench.answer(.throttled, 3600, from: 1)
        bench.now = .seconds(10)
        #expect(bench.check(2, admitsProbe: true) == .probe)
        bench.answer(from: 2, isProbe: true)
        bench.now = .seconds(60)
        #expect(bench.check(1, admitsProbe: true) == .probe)
        bench.answer(.throttled, 3600, from: 1, isProbe: true)
        #expect(bench.opens(2) == nil && bench.opens(1) != nil)
    }

    @Test(
        "Neither a good response nor a minute makes a gate forget that its waiters have not gone",
        arguments: [(asked: 16, isGood: true), (90, false)]
    )
    func remembers(_ row: (asked: Int, isGood: Bool)) {
        var bench = Bench()
        bench.answer(.throttled, row.asked, from: 1)
        bench.now = .seconds(row.asked) + .milliseconds(500)
        #expect(bench.check(2) == .open)
        if row.isGood { bench.answer(from: 2) }
        bench.now += .milliseconds(500)
        bench.answer(.throttled, 2, from: 3)
        guard case .closed(let gate) = bench.check(4) else {
            Issue.record("it should be closed")
            return
        }
        #expect(gate.spread == .seconds(8))
    }

    @Test("That 429s close their resource alone is remembered for a minute after the probe, not after the 429")
    func narrowMinute() {
        var bench = Bench()
        bench.answer(.throttled, 30, from: 1)
        bench.now = .seconds(29)
        #expect(bench.check(2, admitsProbe: true) == .probe)
        bench.answer(from: 2, isProbe: true)
        bench.now = .seconds(61)
        #expect(bench.check(2) == .open)
        bench.now = .seconds(62)
        bench.answer(.throttled, 30, from: 1)
        #expect(bench.opens(2) == nil)
    }

    @Test("A resource that is closed for longer than anybody waits is probed just as often")
    func longPause() {
        var bench = Bench()
        bench.answer(.throttled, 3600, from: 1)
        var probes: [Int] = []
        for second in 1...300 {
            bench.now = .seconds(second)
            if bench.check(1, admitsProbe: true) == .probe { probes.append(second) }
        }
        #expect(probes == [60, 120, 180, 240, 300])
        // The origin is probed sixty times in all.
        var others = 0
        for second in 301...3600 {
            bench.now = .seconds(second)
            if bench.check(2, admitsProbe: true) == .probe { others += 1 }
        }
        #expect((54...56).contains(others))
    }

    @Test("Many resources that are closed for longer than anybody waits share one probe a second")
    func manyLongPauses() {
        var bench = Bench()
        for resource in 1...100 { bench.answer(.throttled, 50, from: resource) }
        var probes = 0
        for step in 1...400 {
            bench.now = .milliseconds(step * 100)
            for resource in 1...100 {
                let place = GatePlace(resource: resource, credential: 1000)
                let answer = bench.gates.check(place, admitsProbe: true, longestWait: .seconds(2), now: bench.now)
                if answer == .probe { probes += 1 }
            }
        }
        #expect((30...40).contains(probes), "\(probes) in 40 s")
    }

    @Test(
        "A later, shorter pause does not open a gate earlier; calls are spread over half of the pause, 8 s at most",
        arguments: [
            (asked: 4, spread: 2), (60, 8),
        ]
    )
    func longest(_ row: (asked: Int, spread: Int)) {
        var bench = Bench()
        bench.answer(.throttled, row.asked, from: 1)
        bench.now = .seconds(1)
        bench.answer(.throttled, 1, from: 1)
        guard case .closed(let gate) = bench.check(1) else {
            Issue.record("it should be closed")
            return
        }
        #expect(gate.opens == .seconds(row.asked) && gate.spread == .seconds(row.spread))
    }

    @Test(
        "A gate that closes again before its waiters have gone was never open: the spread grows with the whole time"
    )
    func closedAgain() {
        for kind in [GateNotice.Kind.throttled, .unavailable] {
            var bench = Bench()
            if kind == .unavailable { bench.answer(kind, 4, from: 1) }
            var spreads: [Duration] = []
            // The first of those who waited is told to wait again, and again.
            for _ in 0..<5 {
                bench.answer(kind, 4, from: 1)
                guard case .closed(let gate) = bench.check(1) else { break }
                spreads.append(gate.spread)
                bench.now += .seconds(4.1)
                #expect(bench.check(1) == .open)
            }
            #expect(spreads == [2, 4.05, 6.1, 8, 8].map { .seconds($0) }, "\(kind)")
            bench.now += .seconds(8)
            bench.answer(kind, 4, from: 1)
            guard case .closed(let gate) = bench.check(1) else {
                Issue.record("it should be closed")
                continue
            }
            #expect(gate.spread == .seconds(2), "\(kind)")
        }
    }

    @Test(
        "When a probe opens the origin, waiting calls return over half of the time, 5 s at most",
        arguments: [(closed: 100, spread: 100), (1_100, 550), (60_100, 5_000)]
    )
    func woken(_ row: (closed: Int, spread: Int)) {
        var bench = Bench()
        bench.answer(.throttled, 100, from: 1)
        bench.now = .milliseconds(row.closed)
        #expect(bench.check(2, admitsProbe: true) == .probe)
        #expect(bench.answer(from: 2, isProbe: true).opened == [1000: .milliseconds(row.spread)])
    }

    @Test("Gates are bounded in number and time whatever servers ask for, and forgotten once nothing is closed")
    func bounds() {
        var bench = Bench()
        bench.answer(.throttled, 4_000_000_000, from: 0)
        #expect(bench.gates.lastOpening(now: .zero) == RetryGates.longestPause)
        for index in 1...10_000 {
            bench.answer(.unavailable, index % 50 + 1, from: index, credential: index)
            bench.answer(.throttled, index % 50 + 1, from: index, credential: index)
        }
        #expect(bench.gates.size <= 4 * RetryGates.limit + 4)
        #expect(bench.opens(0) != nil, "what opens last stays")
        bench.now = .seconds(7200)
        #expect(bench.opens(0) == nil)
        #expect(bench.gates.isEmpty)
    }
}
