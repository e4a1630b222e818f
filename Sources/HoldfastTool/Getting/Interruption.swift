// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Dispatch
    internal import Foundation

    /// Ends a command in good order at Control-C; a second one ends it at once.
    struct Interruption {
        private let sources: [any DispatchSourceSignal]

        init(_ action: @escaping @Sendable () -> Void) {
            sources = [SIGINT, SIGTERM].map { number in
                signal(number, SIG_IGN)
                let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
                source.setEventHandler {
                    signal(number, SIG_DFL)
                    action()
                }
                source.resume()
                return source
            }
        }

        func end() {
            for source in sources { source.cancel() }
        }
    }
#endif
