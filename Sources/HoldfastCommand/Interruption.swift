// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Dispatch
private import Foundation

/// Ends a program cleanly at Control-C, at SIGTERM, or when its terminal closes (SIGHUP); a second signal ends it at once.
package enum Interruption {
    /// Runs work in its own task, which each of these signals cancels.
    ///
    /// - Returns: the result. Cancelled work is waited for, so that it can clean up.
    package static func cancelling<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value
    ) async -> Result<Value, any Error> {
        let task = Task { try await work() }
        let sources = [SIGINT, SIGTERM, SIGHUP].compactMap { number -> (any DispatchSourceSignal)? in
            let former = signal(number, SIG_IGN)
            // By nohup: the program is to outlive its terminal.
            if number == SIGHUP, unsafeBitCast(former, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self) {
                return nil
            }
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
