// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Dispatch
private import Foundation

/// Ends a program in good order at Control-C or SIGTERM; a second one ends it at once.
package enum Interruption {
    /// Runs work in a task of its own, which either signal cancels.
    ///
    /// - Returns: what came of it. Work that is cancelled is waited for, so that it can put away what it had begun.
    package static func cancelling<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value
    ) async -> Result<Value, any Error> {
        let task = Task { try await work() }
        let sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                signal(number, SIG_DFL)
                task.cancel()
            }
            source.activate()
            return source
        }
        let result = await task.result
        for source in sources { source.cancel() }
        return result
    }
}
