// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import CAllocationCount
internal import Harness

/// A subject in a case, or a stage, and what was measured of it.
struct Contest {
    let name: String
    let subject: String
    let threads: Int
    /// Asks on a thread for what stands at these places; nil for Python's caches.
    let ask: (@Sendable (Int, Range<Int>) async throws -> Int)?
    let isSlow: Bool
    private var times: [Double] = []
    private var instructions: [Double] = []
    private var allocations: Double?
    private(set) var finding: String?
    var skipped: String?

    init(
        _ name: String,
        _ subject: String,
        threads: Int = 1,
        isSlow: Bool = false,
        ask: (@Sendable (Int, Range<Int>) async throws -> Int)?
    ) {
        (self.name, self.subject, self.threads, self.isSlow, self.ask) = (name, subject, threads, isSlow, ask)
    }

    /// Adds a turn that was taken elsewhere.
    mutating func note(_ spent: Spent, isCounted: Bool) {
        if spent.right < spent.hits {
            finding = "\(subject), \(name): \(spent.hits - spent.right) answers of \(spent.hits) were wrong."
        }
        if isCounted { times.append(spent.each) }
    }

    /// Takes a turn.
    mutating func turn(_ limit: UInt64, _ counter: InstructionCounter?, isCounted: Bool) async throws {
        guard let ask else { return }
        let before = counter?.count
        let spent = try await Turn(limit: limit, first: isSlow ? 1 : 8).run(threads, ask)
        if isCounted, threads == 1, let counter, let before {
            instructions.append(Double(counter.count - before) / Double(spent.hits))
        }
        note(spent, isCounted: isCounted)
    }

    /// Counts the allocations of some hits, apart from the turns that are timed.
    mutating func count() async throws {
        guard let ask, threads == 1, holdfast_allocation_count() >= 0 else { return }
        let hits = isSlow ? 8 : 512
        let before = holdfast_allocation_count()
        holdfast_count_allocations(1)
        defer { holdfast_count_allocations(0) }
        _ = try await ask(0, 0..<hits)
        allocations = Double(holdfast_allocation_count() - before) / Double(hits)
    }

    /// Adds what was measured to a report.
    func add(to report: inout Report) {
        if let skipped {
            report.add(Figure(name, subject, skipped: skipped, "ns"))
            return
        }
        report.add(Figure(name, subject, Sample(times), "ns"))
        report.add(Figure("\(name)-instructions", subject, Sample(instructions), "instructions"))
        if let allocations { report.add(Figure("\(name)-allocations", subject, allocations, "allocations")) }
    }
}
