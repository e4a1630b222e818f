// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Dispatch
internal import Foundation

/// Ends the process on SIGINT or SIGTERM, after removing the run's files.
public final class Interruption {
    private let sources: [any DispatchSourceSignal]

    /// Begins to wait for either signal.
    ///
    /// - Parameter clean: removes everything that must not remain.
    public init(_ clean: @escaping @Sendable () -> Void) {
        sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                clean()
                exit(128 + number)
            }
            source.activate()
            return source
        }
    }

    /// Stops waiting.
    public func end() {
        for source in sources { source.cancel() }
    }
}
