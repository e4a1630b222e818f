// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import CInstructionCount

/// Work whose instructions ``CallgrindRun`` counts.
public enum CountedWork {
    /// Runs the work.
    public static func run(_ work: @escaping () -> Void) {
        let box = Box(work)
        holdfast_counted(
            { state in if let state { Unmanaged<Box>.fromOpaque(state).takeUnretainedValue().work() } },
            Unmanaged.passUnretained(box).toOpaque()
        )
        // The function above has no reference to it.
        withExtendedLifetime(box) {}
    }

    private final class Box {
        let work: () -> Void

        init(_ work: @escaping () -> Void) {
            self.work = work
        }
    }
}
