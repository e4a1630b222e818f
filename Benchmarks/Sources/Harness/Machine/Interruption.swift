// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Dispatch
internal import Foundation

/// Ends the process on an interrupt or a request to end, after the run's files are gone.
public final class Interruption {
    private let sources: [any DispatchSourceSignal]

    /// Waits for either signal from now on.
    ///
    /// - Parameter clean: removes what must not stay behind.
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

    /// Waits no longer.
    public func end() {
        for source in sources { source.cancel() }
    }
}
