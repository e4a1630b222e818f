// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import CInstructionCount

/// Instructions that processors carried out for this process outside of the system's own code, all threads together.
///
/// They repeat to about a hundredth where times move by a third. Counted on Linux, where the system lends its performance counters.
public struct InstructionCounter: Sendable {
    private let counter: Int32

    /// Begins to count; nil where the system lends no counter.
    ///
    /// Threads that are there by then, beside the calling one, are not counted: make it before anything else.
    public init?() {
        counter = holdfast_instructions_open()
        if counter < 0 || holdfast_instructions_read(counter) < 0 { return nil }
    }

    /// How many there were since the counter was made.
    public var count: Int { Int(max(0, holdfast_instructions_read(counter))) }
}
