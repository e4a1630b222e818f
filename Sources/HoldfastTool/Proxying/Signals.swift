// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Dispatch
    internal import Foundation
    internal import Synchronization

    /// What asks a program to end.
    enum Signals {
        /// An element for each SIGTERM and SIGINT from now on, which then do not end the program by themselves.
        ///
        /// A closed pipe of standard output does not end it either.
        static func ending() -> AsyncStream<Void> {
            AsyncStream(bufferingPolicy: .bufferingOldest(2)) { continuation in
                signal(SIGPIPE, SIG_IGN)
                let sources = [SIGTERM, SIGINT].map { number in
                    signal(number, SIG_IGN)
                    let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
                    source.setEventHandler { continuation.yield() }
                    source.activate()
                    return SignalSource(source)
                }
                continuation.onTermination = { _ in
                    for source in sources { source.cancel() }
                }
            }
        }
    }

    /// A dispatch source that is held until it is cancelled.
    private final class SignalSource: Sendable {
        private let source: Mutex<(any DispatchSourceSignal)?>

        init(_ source: sending any DispatchSourceSignal) {
            self.source = Mutex(source)
        }

        func cancel() {
            source.withLock { source in
                source?.cancel()
                source = nil
            }
        }
    }
#endif
