// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

#if canImport(Darwin)
    /// The thread that a protocol was started on, on Apple systems: its client is to be called there and nowhere else.
    ///
    /// Linux has no such thread: there a protocol is called on the queue of its session.
    final class LoadingThread: Sendable {
        // Proof: `loop` is used for `CFRunLoopPerformBlock` and `CFRunLoopWakeUp` alone, which may be called from any thread.
        // `modes` is an immutable array of strings. `action` is made on the loop's thread and called only in blocks that the
        // loop performs there, so all that it touches stays on that thread. None is changed after `init`.
        private nonisolated(unsafe) let loop: CFRunLoop
        private nonisolated(unsafe) let modes: CFArray
        private nonisolated(unsafe) let action: () -> Void

        /// Made on the thread itself.
        init(_ action: @escaping () -> Void) {
            let loop: CFRunLoop = CFRunLoopGetCurrent()
            // The mode that the loop runs in now may be none of the common ones.
            let names: [CFRunLoopMode?] = [CFRunLoopMode.commonModes, CFRunLoopCopyCurrentMode(loop)]
            self.loop = loop
            modes = NSArray(array: names.compactMap { $0?.rawValue }) as CFArray
            self.action = action
        }

        /// Has the action run on the thread, after what was asked for before; from any thread.
        func callBack() {
            CFRunLoopPerformBlock(loop, modes) { self.action() }
            CFRunLoopWakeUp(loop)
        }
    }
#endif
