// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics

/// The pool as decision 0027 writes it down, word for word: floating point, a list of those that wait, no thought of speed.
///
/// Written without a look at ours, to be compared with it decision for decision; it draws the same lots in the same order.
struct PoolOracle<Generator: RandomNumberGenerator> {
    enum Answer: Equatable {
        case go, wait, stop
    }

    struct Call {
        let ticket: Int
        let patience: Double
        let end: Double
        var since: Double?
        var release: Double?
    }

    private let base = 0.1
    private let cap = 5.0
    private let gain = 0.25
    private let start = 3.0
    private let capacity = 16.0
    private let limit: Double
    private let spread: Double
    private let most: Double
    private let rate: Double
    private var generator: Generator
    private var last: Double
    private(set) var tokens = 3.0
    private(set) var window = 2.0
    private(set) var inFlight = 0
    private(set) var level = 0
    private var next = 0.0
    private var raised = -Double.infinity
    private var dry = 0.0
    private var calm = -Double.infinity
    private var span = 0.0
    private(set) var waiting: [Call] = []

    init(isPatient: Bool, now: Double, generator: Generator) {
        (limit, spread, most) = isPatient ? (4, 1, 10) : (16, 0.5, 5)
        self.generator = generator
        rate = (isPatient ? 0.1 : 0.05) * Double.random(in: 0.5..<1.5, using: &self.generator)
        last = now
    }

    mutating func ask(_ call: Call, now: Double) -> Answer {
        var call = call
        let answer = permit(&call, now: now)
        if answer == .wait { waiting.append(call) }
        return answer
    }

    mutating func askAgain(_ ticket: Int, now: Double) -> Answer {
        guard let index = waiting.firstIndex(where: { $0.ticket == ticket }) else { return .stop }
        var call = waiting.remove(at: index)
        let answer = permit(&call, now: now)
        if answer == .wait { waiting.insert(call, at: index) }
        return answer
    }

    mutating func withdraw(_ ticket: Int) {
        waiting.removeAll { $0.ticket == ticket }
    }

    /// - Returns: those that go and those that stop, in their order.
    mutating func ended(started: Double?, succeeded: Bool, now: Double) -> [(Int, Answer)] {
        refill(now)
        if started != nil { inFlight -= 1 }
        if succeeded {
            if level >= 2 {
                calm = now
                span = min(most, spread * (now - dry))
            }
            level = 0
            tokens = min(capacity, tokens + gain)
            if started != nil { window = min(limit, window + 1) }
        } else if let started {
            tokens = max(0, tokens - 1)
            window = max(1, window / 2)
            if started >= raised {
                if level == 0 { dry = now }
                level += 1
                raised = now
                var ceiling = base
                for _ in 0..<min(level, 20) { ceiling *= 2 }
                next = now + min(cap, ceiling) * Double.random(in: 0.5..<1, using: &generator)
            }
        } else {
            // What a first attempt's failure tells is nothing new for those that wait.
            return []
        }
        return reask(now)
    }

    mutating func givenBack(now: Double) -> [(Int, Answer)] {
        inFlight -= 1
        return reask(now)
    }

    private mutating func reask(_ now: Double) -> [(Int, Answer)] {
        waiting.map(\.ticket).compactMap { ticket in
            let answer = askAgain(ticket, now: now)
            return answer == .wait ? nil : (ticket, answer)
        }
    }

    private mutating func refill(_ now: Double) {
        if tokens < start { tokens = min(start, tokens + rate * (now - last)) }
        last = now
        if level > 0, now > next + 10 {
            level = 0
            window = max(window, 2)
        }
    }

    private mutating func permit(_ call: inout Call, now: Double) -> Answer {
        refill(now)
        let since = call.since ?? now
        call.since = since
        let patient = min(since + call.patience, call.end)
        if level == 0, calm > since {
            let release = call.release ?? min(patient, calm + span * Double.random(in: 0..<1, using: &generator))
            call.release = release
            if now < release { return .wait }
        }
        if level > 0, now < next { return next <= patient ? .wait : .stop }
        let (places, until) = level > 0 ? (1, patient) : (Int(window), call.end)
        if inFlight >= places { return now < until ? .wait : .stop }
        if tokens < 1 - 1e-9 {
            if inFlight > 0 { return now < patient ? .wait : .stop }
            return now + (1 - tokens) / rate <= patient ? .wait : .stop
        }
        inFlight += 1
        return .go
    }
}
