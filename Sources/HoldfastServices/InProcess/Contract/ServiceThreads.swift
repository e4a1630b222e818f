// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
private import Synchronization

/// Runs work that may block: each piece on its own thread up to a limit, the rest in order of arrival.
///
/// Dispatch queues are not used because they stop at about 255 threads for the whole process, and everything after that waits
/// until a blocked one is done.
final class ServiceThreads: Sendable {
    private struct State {
        var running = 0
        /// The oldest is last.
        var outgoing: [@Sendable () -> Void] = []
        var incoming: [@Sendable () -> Void] = []

        mutating func next() -> (@Sendable () -> Void)? {
            if outgoing.isEmpty {
                outgoing = incoming.reversed()
                incoming = []
            }
            return outgoing.popLast()
        }
    }

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int) {
        self.limit = max(limit, 1)
    }

    func run(_ work: @escaping @Sendable () -> Void) {
        let isDue = state.withLock { state in
            guard state.running < limit else {
                state.incoming.append(work)
                return false
            }
            state.running += 1
            return true
        }
        guard isDue else { return }
        let thread = Thread {
            var work = work
            while true {
                work()
                let next = self.state.withLock { state in
                    let next = state.next()
                    if next == nil { state.running -= 1 }
                    return next
                }
                guard let next else { return }
                work = next
            }
        }
        thread.name = "holdfast.service"
        thread.start()
    }
}
