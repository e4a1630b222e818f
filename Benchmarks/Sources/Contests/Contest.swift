// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import CAllocationCount
public import Harness

/// A subject in a case, with its measurements from each turn.
public struct Contest: Sendable {
    /// Makes the calls with these numbers on the thread with this number; returns how many results were correct.
    public typealias Call = @Sendable (Int, Range<Int>) async throws -> Int

    /// The name of the case.
    public let name: String
    /// The name of the subject.
    public let subject: String
    /// How many threads call at once.
    public let threads: Int
    /// Makes calls; nil for a subject in another process, whose turns are passed to ``note(_:isCounted:)``.
    public let call: Call?
    /// Whether a call takes milliseconds.
    public let isSlow: Bool
    /// Why the subject was not measured; nil if it was.
    public var skipped: String?
    /// What was wrong with its responses; nil if they were all correct.
    public private(set) var finding: String?
    private var times: [Double] = []
    private var instructions: [Double] = []
    private var allocations: Double?

    /// Creates a contest without any turns.
    public init(_ name: String, _ subject: String, threads: Int = 1, isSlow: Bool = false, call: Call?) {
        (self.name, self.subject, self.threads, self.isSlow, self.call) = (name, subject, threads, isSlow, call)
    }

    /// The name by which instructions are counted in another process.
    public var countName: String { "\(name)/\(subject)" }

    /// Adds a turn that was taken elsewhere.
    public mutating func note(_ spent: Spent, isCounted: Bool) {
        if spent.right < spent.calls {
            finding = "\(subject), \(name): \(spent.calls - spent.right) of \(spent.calls) responses were wrong."
        }
        if isCounted { times.append(spent.each) }
    }

    /// Takes a turn of this many nanoseconds.
    ///
    /// - Parameters:
    ///   - counter: Counts the instructions of contests with one thread.
    ///   - isCounted: false for a warm-up turn.
    public mutating func turn(_ limit: UInt64, _ counter: InstructionCounter?, isCounted: Bool) async throws {
        guard let call else { return }
        let before = counter?.count
        let spent = try await Turn(limit: limit, first: isSlow ? 1 : 8).run(threads, call)
        if isCounted, threads == 1, let counter, let before {
            instructions.append(Double(counter.count - before) / Double(spent.calls))
        }
        note(spent, isCounted: isCounted)
    }

    /// Counts the allocations of some calls on one thread, outside the timed turns.
    public mutating func countAllocations() async throws {
        guard let call, threads == 1, holdfast_allocation_count() >= 0 else { return }
        let calls = isSlow ? 8 : 512
        let before = holdfast_allocation_count()
        holdfast_count_allocations(1)
        defer { holdfast_count_allocations(0) }
        _ = try await call(0, 0..<calls)
        allocations = Double(holdfast_allocation_count() - before) / Double(calls)
    }

    /// Adds the measurements to a report.
    ///
    /// - Parameter counts: instructions by ``countName``, for turns without a counter.
    public func add(to report: inout Report, counts: [String: Double] = [:]) {
        if let skipped {
            report.add(Figure(name, subject, skipped: skipped, "ns"))
            return
        }
        report.add(Figure(name, subject, Sample(times), "ns"))
        let counted = instructions.isEmpty ? counts[countName].map { [$0.rounded()] } ?? [] : instructions
        report.add(Figure("\(name)-instructions", subject, Sample(counted), "instructions"))
        if let allocations { report.add(Figure("\(name)-allocations", subject, allocations, "allocations")) }
    }
}
