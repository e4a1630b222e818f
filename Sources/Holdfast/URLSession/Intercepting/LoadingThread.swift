// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

#if canImport(Darwin)
    /// The thread that a protocol was started on, on Apple systems: its client is to be called there and nowhere else.
    ///
    /// Linux has no such thread: there a protocol is called on the queue of its session.
    final class LoadingThread: Sendable {
        // Proof: `loop` is used for `CFRunLoopPerformBlock` and `CFRunLoopWakeUp` alone, which are documented to be called
        // from any thread. `action` is made on the loop's thread, and called only within a block that the loop performs
        // there, so all that it touches stays on that thread. Neither is changed after `init`.
        private nonisolated(unsafe) let loop: CFRunLoop
        private nonisolated(unsafe) let action: () -> Void

        /// Made on the thread itself.
        init(_ action: @escaping () -> Void) {
            loop = CFRunLoopGetCurrent()
            self.action = action
        }

        /// Has the action run on the thread, after what was asked for before; from any thread.
        func callBack() {
            CFRunLoopPerformBlock(loop, CFRunLoopMode.commonModes.rawValue) { self.action() }
            CFRunLoopWakeUp(loop)
        }
    }
#endif
