// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

/// Random calls of several users, overlapping or not, to an origin that says anything, judged from the list of all exchanges.
///
/// `HOLDFAST_ADMISSION_SEQUENCES` says how many sequences run (500), `HOLDFAST_ADMISSION_SEED` with which seed they begin (1), and
/// `HOLDFAST_ADMISSION_SURVEY=1` prints the figures.
@Suite("Any sequence of calls is answered as RFC 9111 permits", .timeLimit(.minutes(600)))
struct AdmissionPropertyTests {
    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    @Test("In both modes, over memory, disk and both, no response breaks the RFC")
    func sequences() async throws {
        let count = UInt64(Self.number("HOLDFAST_ADMISSION_SEQUENCES") ?? 500)
        let first = UInt64(Self.number("HOLDFAST_ADMISSION_SEED") ?? 1)
        let width: UInt64 = 100
        let begun = ContinuousClock.now
        let known = KnownFaults()
        var outcomes: [AdmissionBatch.Outcome] = []
        try await withThrowingTaskGroup(of: AdmissionBatch.Outcome.self) { group in
            var next = first
            func add() {
                guard next < first + count else { return }
                let seeds = next..<min(next + width, first + count)
                next = seeds.upperBound
                group.addTask { try await AdmissionBatch.run(seeds, known: known) }
            }
            for _ in 0..<ProcessInfo.processInfo.activeProcessorCount { add() }
            while let outcome = try await group.next() {
                outcomes.append(outcome)
                add()
            }
        }
        var counts: [String: AdmissionBatch.Counts] = [:]
        var faults: [AdmissionViolation.Fault: Int] = [:]
        for outcome in outcomes {
            counts.merge(outcome.counts) { sum, more in
                var sum = sum
                sum += more
                return sum
            }
            faults.merge(outcome.faults, uniquingKeysWith: +)
        }
        for fault in faults.keys.sorted() {
            let failures = outcomes.flatMap(\.failures).filter { $0.fault == fault }
            guard let shortest = failures.min(by: { $0.text.count < $1.text.count }) else { continue }
            Issue.record("\(fault) in \(faults[fault] ?? 0) sequences, such as\n\(shortest.text)")
        }
        for (setting, counts) in counts.sorted(by: { $0.key < $1.key }) {
            if Self.number("HOLDFAST_ADMISSION_SURVEY") == 1 { print(setting, counts) }
            guard counts.sequences >= 50 else { continue }
            let answers = Double(counts.answers)
            // Without hits the property would hold of no cache at all.
            #expect(Double(counts.hits) > 0.05 * answers, "\(setting): \(counts)")
            #expect(Double(counts.revalidated) > 0.005 * answers, "\(setting): \(counts)")
            #expect(counts.joined > 0 && counts.shared > 0, "\(setting): \(counts)")
        }
        if Self.number("HOLDFAST_ADMISSION_SURVEY") == 1 { print(count, "sequences in", ContinuousClock.now - begun) }
    }
}
