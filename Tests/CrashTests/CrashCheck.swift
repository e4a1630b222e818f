// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

@testable import CrashChild

/// Follows the log of a store and says what may lie in it; whatever else is found there is a finding.
///
/// Pure: lines go in, findings come out. For each name it keeps every state that the log allows: one while nothing is under way,
/// several after a crash or beside a purge.
struct CrashCheck {
    /// A state that a name may be in: an entry, with the times between which it was surely there.
    private struct Candidate: Hashable {
        let stamp: CrashStamp
        let begun: Int
        let done: Int
        /// nil: not known.
        var isPinned: Bool?
    }

    private struct Running {
        let operation: CrashOperation
        let begun: Int
    }

    private struct Purge {
        let number: Int
        let purge: CrashPurge
        let begun: Int
        var done: Int?
    }

    /// Whether any entry may be missing because its room was needed; one that is surely pinned may not.
    let mayEvict: Bool
    /// What went against the promises so far.
    private(set) var findings: [String] = []
    /// Body bytes that were written at most, by puts and by freshenings that copied.
    private(set) var bytesWritten = 0
    /// Puts that were acknowledged.
    private(set) var putsDone = 0

    private var time = 0
    private var states: [CrashIdentity: Set<Candidate?>] = [:]
    private var running: [Int: Running] = [:]
    private var purges: [Purge] = []

    init(mayEvict: Bool) {
        self.mayEvict = mayEvict
    }

    /// Follows one line of the log.
    mutating func read(_ line: CrashLine) {
        time += 1
        switch line {
        case .opened, .surveyed: break
        case .evicted: if !mayEvict { findings.append("the store evicted: the room given is too small for this test") }
        case .wrong(let text): findings.append(text)
        case .saw(let identity, let sight): saw(identity, sight)
        case .begin(let number, let operation): begin(number, operation)
        case .done(let number, let outcome): done(number, outcome)
        }
    }

    /// The process was killed: what was under way happened or did not.
    mutating func crash() {
        time += 1
        for (number, step) in running.sorted(by: { $0.key < $1.key }) {
            switch step.operation {
            case .put(let identity, let stamp), .freshen(let identity, let stamp):
                states[identity, default: [nil]].insert(Candidate(stamp: stamp, begun: step.begun, done: time))
                if isHit(identity, stamp, since: step.begun) { states[identity]?.insert(nil) }
            case .remove(let identity): states[identity, default: [nil]].insert(nil)
            case .invalidate(let key): for identity in names(of: key) { states[identity, default: [nil]].insert(nil) }
            case .purge: endPurge(number)
            case .pin, .close: break
            }
        }
        running = [:]
        purges = []
    }

    private func names(of key: String) -> [CrashIdentity] {
        CrashIdentity.all.filter { $0.key == key }
    }

    /// Whether a purge that takes the entry was under way at some time since then.
    private func isHit(_ identity: CrashIdentity, _ stamp: CrashStamp, since begun: Int) -> Bool {
        purges.contains { ($0.done ?? .max) > begun && $0.purge.takes(identity, stamp) }
    }

    private mutating func begin(_ number: Int, _ operation: CrashOperation) {
        running[number] = Running(operation: operation, begun: time)
        switch operation {
        case .put(_, let stamp), .freshen(_, let stamp): bytesWritten += stamp.length
        case .pin(let identity, _): setPinned(identity, nil)
        case .purge(let purge):
            purges.append(Purge(number: number, purge: purge, begun: time))
            for identity in CrashIdentity.all {
                let isTaken = states[identity]?.contains { $0.map { purge.takes(identity, $0.stamp) } ?? false }
                if isTaken == true { states[identity]?.insert(nil) }
            }
        case .remove, .invalidate, .close: break
        }
    }

    private mutating func done(_ number: Int, _ outcome: CrashOutcome) {
        guard let step = running.removeValue(forKey: number) else {
            findings.append("done \(number) without its beginning")
            return
        }
        switch (step.operation, outcome) {
        case (.put(let identity, let stamp), .ok):
            putsDone += 1
            become(identity, stamp, since: step.begun)
        case (.freshen(let identity, let stamp), .ok): become(identity, stamp, since: step.begun)
        case (.freshen(let identity, _), .gone):
            if !mayEvict, states[identity, default: [nil]].contains(nil) == false {
                findings.append("\(identity) was gone at its freshening: \(told(identity))")
            }
            states[identity] = [nil]
        case (.remove(let identity), .ok): states[identity] = [nil]
        case (.invalidate(let key), .ok): for identity in names(of: key) { states[identity] = [nil] }
        case (.pin(let identity, let isPinned), .ok): setPinned(identity, isPinned)
        case (.pin, .refused), (.close, .ok): break
        case (.purge(let purge), .ok):
            endPurge(number)
            for (identity, candidates) in states {
                // What was surely there before the purge began is gone; what came beside it may be either.
                let left = candidates.filter { candidate in
                    candidate.map { !purge.takes(identity, $0.stamp) || $0.done > step.begun } ?? true
                }
                states[identity] = left.isEmpty ? [nil] : left
            }
        default: fail(step, number, outcome)
        }
    }

    /// An operation that threw.
    private mutating func fail(_ step: Running, _ number: Int, _ outcome: CrashOutcome) {
        if case .purge = step.operation { endPurge(number) }
        if case .put(let identity, let stamp) = step.operation {
            // A purge or another's invalidation beside a put refuses it; so does a store that is too small for it.
            if outcome.word == "superseded", isHit(identity, stamp, since: step.begun) { return }
            if mayEvict, ["too-large", "no-space"].contains(outcome.word) { return }
        }
        findings.append("\(step.operation) ended with \(outcome)")
    }

    private mutating func endPurge(_ number: Int) {
        for index in purges.indices where purges[index].number == number { purges[index].done = time }
    }

    private mutating func become(_ identity: CrashIdentity, _ stamp: CrashStamp, since begun: Int) {
        states[identity] = [Candidate(stamp: stamp, begun: begun, done: time)]
        if isHit(identity, stamp, since: begun) { states[identity]?.insert(nil) }
    }

    private mutating func setPinned(_ identity: CrashIdentity, _ isPinned: Bool?) {
        states[identity] = Set(
            states[identity, default: [nil]].map { candidate in
                candidate.map { Candidate(stamp: $0.stamp, begun: $0.begun, done: $0.done, isPinned: isPinned) }
            }
        )
    }

    private mutating func saw(_ identity: CrashIdentity, _ sight: CrashSight?) {
        let allowed = states[identity, default: [nil]]
        guard let sight else {
            let isKept = allowed.allSatisfy { $0?.isPinned == true }
            if !allowed.contains(nil), !mayEvict || isKept {
                findings.append("\(identity) is missing; the log allows \(told(identity))")
            }
            states[identity] = [nil]
            return
        }
        let fitting = allowed.compactMap(\.self).filter { $0.stamp == sight.stamp }
        if fitting.isEmpty {
            findings.append("\(identity) holds \(sight.stamp); the log allows \(told(identity))")
        } else if fitting.allSatisfy({ $0.isPinned == !sight.isPinned }) {
            findings.append("\(identity) \(sight.stamp) is \(sight.isPinned ? "" : "not ")pinned against the log")
        }
        states[identity] = [Candidate(stamp: sight.stamp, begun: time, done: time, isPinned: sight.isPinned)]
    }

    /// The states that the log allows, for people.
    private func told(_ identity: CrashIdentity) -> String {
        states[identity, default: [nil]].map { $0.map { "\($0.stamp)" } ?? "nothing" }.sorted().joined(
            separator: " or "
        )
    }
}
