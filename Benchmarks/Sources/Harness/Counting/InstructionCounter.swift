// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import CInstructionCount

/// The instructions of this process outside the system's own code, on all threads.
///
/// They repeat to about a hundredth, even if times vary by a third. Works on Linux, if the system gives access to its
/// performance counters.
public struct InstructionCounter: Sendable {
    private let counter: Int32

    /// Begins to count; nil if the system gives no access to a counter.
    ///
    /// Existing threads other than the calling one are not counted, so create it first of all.
    public init?() {
        counter = holdfast_instructions_open()
        if counter < 0 || holdfast_instructions_read(counter) < 0 { return nil }
    }

    /// The number of instructions since the counter was created.
    public var count: Int { Int(max(0, holdfast_instructions_read(counter))) }
}
